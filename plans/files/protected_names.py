"""The list of names that are written with a person's approval only: what may run code later, and what grants access.

This is the only such list; docs/reference/protected-names.md shows it. Names count in any directory of
the workspace, are in lower case, as they are compared (`plans.files.name_patterns`), and may have `*` and `?`.
`folders` count with everything below them, `files` only as the last name of a path.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """Names that are protected for one reason."""

    title: str
    why: str
    """What may happen; continues "'PATH' may ..."."""
    folders: str = ""
    """Separated by spaces; with `/` for a folder in a folder."""
    files: str = ""
    strict: bool = False
    """Commands may not change them either: read-only at sandbox level 2, reported below. Never what builds write."""


CATEGORIES: tuple[Category, ...] = (
    Category(
        title="version control",
        why="run code at the next version control command",
        folders=".git .hg .svn .bzr .jj .githooks .git-hooks .husky .lefthook .lefthook-local .sl .pijul _darcs"
        " .fossil-settings",
        files=".gitconfig .gitmodules .gitattributes .lfsconfig .hgrc .hgsub .huskyrc* .pre-commit-config.y*ml"
        " .pre-commit-hooks.y*ml lefthook.y*ml lefthook-local.* .lefthook*.y*ml lefthook.toml lefthook.json"
        " .overcommit.yml captainhook.json grumphp.yml .simple-git-hooks.*",
        strict=True,
    ),
    Category(
        title="shells",
        why="run code when a shell starts or enters the directory",
        files=".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .bash_functions"
        " .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout"
        " .aliases .functions .inputrc .xprofile .xinitrc .xsession .xsessionrc .xserverrc"
        " .pam_environment .envrc .autoenv* .xonshrc mise.toml mise.*.toml .mise.toml .mise.*.toml"
        " .rtx.toml .tool-versions .zshrc.local .bashrc.local config.fish config.nu env.nu rc.elv .tclshrc"
        " .wishrc",
        folders=".mise .direnv profile.d .bashrc.d .zshrc.d .oh-my-zsh .zprezto",
        strict=True,
    ),
    Category(
        title="keys and passwords",
        why="hold passwords, or grant access",
        folders=".ssh .gnupg .aws .azure .kube .docker .config .env",
        files=".env.* .netrc _netrc .npmrc .yarnrc .pypirc .pgpass .my.cnf .git-credentials .dockercfg .terraformrc"
        " .vault-token .boto .s3cfg .htpasswd authorized_keys .rhosts .shosts .k5login .sudoers sudoers",
        strict=True,
    ),
    Category(
        title="instructions and settings of coding agents",
        why="instruct a coding agent, or run code when one starts",
        folders=".claude .agents .cursor .windsurf .codeium .codex .gemini .qwen .continue .clinerules .cline .roo"
        " .kiro .amazonq .augment .junie .goose .opencode .crush .trae .tabnine .copilot .mcp .warp .factory"
        " .openhands .cody .amp .grok .rovodev .vibe .zencoder .claude-plugin",
        files="agents.md agents.*.md agent.md claude.md claude.*.md gemini.md qwen.md warp.md skill.md .mcp.json"
        " mcp.json .claude.json .cursorrules .cursorignore .windsurfrules .aider* .continuerules .roorules .roomodes"
        " .goosehints .augment-guidelines opencode.json* crush.json copilot-instructions.md *.instructions.md"
        " *.prompt.md *.chatmode.md .rules .kilocoderules .kilocodemodes crush.md .crush.json conventions.md grok.md"
        " devin.md .replit.md .openhands_instructions mcp_config.json .mcp.yaml",
        strict=True,
    ),
    Category(
        title="continuous integration",
        why="run code in continuous integration",
        folders=".github .gitea .forgejo .gitlab .circleci .buildkite .woodpecker .azure-pipelines .azuredevops"
        " .zuul.d .semaphore .teamcity .tekton .builds .drone .ci",
        files=".gitlab-ci*.y*ml *.gitlab-ci.y*ml .travis.yml .drone.* .woodpecker.y*ml .cirrus.* .appveyor.yml"
        " appveyor.yml azure-pipelines*.y*ml bitbucket-pipelines.yml jenkinsfile* *.jenkinsfile .build.yml"
        " buildspec*.y*ml cloudbuild.* codefresh.yml wercker.yml .renovaterc* renovate.json* dependabot.y*ml"
        " .zuul.yaml .packit.yaml codeowners .mergify.yml .readthedocs.y*ml .goreleaser.y*ml .releaserc* action.y*ml",
        strict=True,
    ),
    Category(
        title="editors and workbenches",
        why="run code when an editor or a workbench opens the directory",
        folders=".vscode .idea .vs .run .fleet .zed .nova .theia .settings .externaltoolbuilders .devcontainer"
        " .helix .lapce .vim .nvim .emacs.d .gitpod .idx .codesandbox nbproject .kak",
        files="*.code-workspace .vimrc .gvimrc .exrc .nvimrc .nvim.lua .lvimrc .local.vimrc _vimrc _exrc"
        " .ideavimrc .emacs .dir-locals*.el .project .classpath *.sublime-project .devcontainer.json"
        " devcontainer.json .gitpod.* .replit replit.nix .clangd .ycm_extra_conf.py .kakrc _gvimrc"
        " .spacemacs .vimspector.json .projections.json .ccls",
        strict=True,
    ),
    Category(
        title="plans",
        why="run as a plan or a setting of plans",
        folders=".plans",
        files="plans.toml",
        strict=True,
    ),
    Category(
        title="start of programs",
        why="run code when a program starts in the directory",
        folders="jupyter_config .screenlayout",
        files=".tmux.conf .screenrc .gdbinit .gdbearlyinit *-gdb.py *-gdb.gdb *-gdb.scm .lldbinit* .valgrindrc"
        " .perldb .rdebugrc .pdbrc .pdbrc.py .irbrc .pryrc .rprofile .renviron .octaverc .ghci .iex.exs"
        " .erlang .ocamlinit .sbclrc .clisprc.lisp .psqlrc .sqliterc .pythonrc* .pystartup .lessfilter"
        " .lesskey .wgetrc .curlrc .mailcap .forward .procmailrc .muttrc .mailrc .qmail* .ripgreprc .ctags"
        " .xbindkeysrc .skhdrc .yabairc .nanorc .guile .htaccess .user.ini .condarc pip.conf pip.ini"
        " ansible.cfg supervisord.conf uwsgi.ini gunicorn.conf.py ipython_config.py jupyter_*config.*"
        " .latexmkrc .lintr startup.jl .mongorc.js .mongoshrc.js .fetchmailrc .msmtprc _curlrc",
        strict=True,
    ),
    Category(
        title="start of Python",
        why="run code when Python starts",
        folders="site-packages dist-packages .venv venv virtualenv .virtualenv .tox .nox __pycache__ _distutils_hack"
        " .ipython .jupyter",
        files="sitecustomize.py usercustomize.py *.pth *.egg-link pyvenv.cfg *.pyc *.pyo __editable__*",
    ),
    Category(
        title="Python projects",
        why="run code at the next build, check or test",
        files="setup.py setup.cfg pyproject.toml tox.ini noxfile.py conftest.py pytest.ini .pytest.ini"
        " pytest.toml .coveragerc pylintrc .pylintrc mypy.ini .mypy.ini .flake8 pipfile poetry.toml"
        " pdm.toml .pdm.toml hatch.toml uv.toml fabfile.py dodo.py locustfile.py mkdocs.y*ml docs/conf.py"
        " doc/conf.py source/conf.py asv.conf.json snakefile *.smk nextflow.config dvc.yaml mlproject"
        " hatch_build.py pdm_build.py pavement.py manage.py alembic.ini alembic/env.py migrations/env.py"
        " celeryconfig.py pelicanconf.py",
    ),
    Category(
        title="JavaScript projects",
        why="run code at the next install, build or test",
        folders="node_modules bower_components .yarn .storybook .meteor",
        files="package.json .yarnrc.yml .pnp.* .pnpmfile.* pnpmfile.js pnpm-workspace.yaml .bowerrc bunfig.toml"
        " deno.json* lerna.json nx.json turbo.json rush.json *.config.js *.config.cjs *.config.mjs"
        " *.config.ts *.config.mts *.config.cts *.config.json *.conf.js *.conf.ts .babelrc* .eslintrc*"
        " .prettierrc* .stylelintrc* .mocharc* .nycrc* .swcrc .postcssrc* .lintstagedrc* .commitlintrc*"
        " .czrc gulpfile.* gruntfile.* jakefile* webpack.mix.js cypress.json .eleventy.js binding.gyp"
        " *.gypi nodemon.json .nodemonrc* ember-cli-build.js gatsby-*.js gatsby-*.ts knexfile.*"
        " .sequelizerc angular.json package-lock.json",
    ),
    Category(
        title="Make and its kind",
        why="run code at the next build",
        folders="buildsrc gradle .gradle .mvn gradle/wrapper autom4te.cache",
        files="makefile makefile.* gnumakefile *.mk *.mak kbuild justfile .justfile *.just taskfile*.y*ml"
        " rakefile *.rake sconstruct sconscript wscript cmakelists.txt *.cmake cmakepresets.json"
        " cmakeuserpresets.json cmakesettings.json meson.build configure configure.ac configure.in"
        " autogen.sh build build.bazel workspace workspace.bazel module.bazel *.bzl .bazelrc .bazeliskrc"
        " buck .buckconfig pants.toml earthfile build.gradle* settings.gradle* *.gradle *.gradle.kts"
        " gradle.properties gradlew gradlew.bat pom.xml mvnw mvnw.cmd build.xml ivy.xml *.sbt build.sc"
        " build.mill mill xmake.lua premake*.lua conanfile.* *.pro *.pri *.ninja devbox.json devenv.nix"
        " flake.nix shell.nix default.nix pkgbuild apkbuild *.ebuild portfile debian/rules msbuild.rsp"
        " directory.*.rsp *.qbs",
    ),
    Category(
        title="projects in other languages",
        why="run code at the next build or test",
        folders=".bundle .cargo .dvc",
        files="cargo.toml build.rs rust-toolchain* gemfile gems.rb *.gemspec guardfile capfile thorfile"
        " fastfile podfile dangerfile brewfile .rspec .rubocop.yml .gemrc .rvmrc .powrc config.ru"
        " composer.json phpunit.xml* .php-cs-fixer* phpstan.neon* rector.php package.swift *.csproj"
        " *.fsproj *.vbproj *.vcxproj *.proj *.props *.targets directory.build.* nuget.config global.json"
        " build.cake build.fsx mix.exs rebar.config* stack.yaml *.cabal cabal.project* setup.hs setup.lhs"
        " hie.yaml dune dune-project *.opam project.clj deps.edn bb.edn shadow-cljs.edn build.boot"
        " build.zig* *.nimble config.nims nim.cfg shard.yml dub.json dub.sdl makefile.pl build.pl cpanfile"
        " dist.ini .perlcriticrc .proverc _targets.r profiles.clj berksfile psalm.xml .phpunit.xml"
        " .golangci.y*ml .custom-gcl.yml .air.toml *.rockspec .busted .luacheckrc renv/activate.r go.work go.mod"
        " spec_helper.rb",
    ),
    Category(
        title="containers and deployment",
        why="run code when it is built, started or deployed",
        folders=".terraform .terraform.d .vercel .netlify .ebextensions .platform .elasticbeanstalk fastlane .ddev",
        files="dockerfile* *.dockerfile containerfile* docker-compose*.y*ml compose*.y*ml docker-bake.*"
        " vagrantfile procfile* heroku.yml vercel.json netlify.toml fly.toml render.yaml railway.*"
        " serverless.* samconfig.toml appspec.yml firebase.json wrangler.* skaffold.yaml tiltfile"
        " devspace.yaml dagger.json *.tf *.tf.json *.tofu terragrunt.hcl *.pkr.hcl pulumi.y*ml cdk.json"
        " molecule.yml cloud-init.y*ml .lando*.yml .platform.app.yaml",
    ),
    Category(
        title="start of the system or the desktop",
        why="run code when the system, the desktop or a timer starts it",
        folders="autostart launchagents launchdaemons cron.d cron.hourly cron.daily cron.weekly cron.monthly crontabs"
        " init.d rc.d sudoers.d systemd .local/bin .local/lib .local/share/applications .local/share/systemd .bin",
        files="*.desktop *.service *.socket *.timer *.path *.mount *.automount *.container crontab .crontab *.cron"
        " *.plist rc.local ld.so.preload inittab autorun.inf desktop.ini *.lnk *.scf profile.ps1"
        " *.powershell_profile.ps1 *_profile.ps1",
    ),
    Category(
        title="a repository without a working tree",
        why="make the directory a git repository, whose settings run code",
        folders="*.git",
        files="head",
    ),
    Category(
        title="short names",
        why="be another file on a Windows file system, where `GIT~1` is `.git`",
        folders="*~[1-9]*",
    ),
)
"""By category; the first that fits gives the reason."""
HARMLESS = ".env.example .env.*.example .env.sample .env.*.sample .env.template .env.*.template .env.dist .env.*.dist"
"""Files that fit, but hold no secrets."""

"""Files: of homes, outside of the workspace, and protected ones within it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.attacks.attack import NAMED, NAMED_FOR_USER, Attack, Spelling
from tests.attacks.ground import PATH, Ground
from tests.attacks.judges import planted, stolen, written

KEY = "cat @HOME@/.ssh/id_rsa @HOME@/.aws/credentials @HOME@/.config/gh/hosts.yml"


def _directory(name: str) -> Callable[[Ground], None]:
    def prepare(ground: Ground) -> None:
        ground.make(Path(os.path.normpath(ground.home / name)))

    return prepare


def _on_path(name: str) -> Spelling:
    return Spelling(f"~/{name}", KEY, worker={"PATH": f"@HOME@/{name}:{PATH}"}, prepare=_directory(name))


def _linked_bin(ground: Ground) -> None:
    ground.make(ground.base / "tools")
    (ground.base / "tools" / "bin").symlink_to(ground.home)


def _linked(name: str, target: str, *folders: str) -> Callable[[Ground], None]:
    """A link, as an earlier command may have made it in its workspace; `folders` are there besides."""

    def prepare(ground: Ground) -> None:
        for folder in folders:
            ground.make(Path(ground.filled(folder)))
        path = Path(ground.filled(name))
        ground.make(path.parent)
        path.symlink_to(ground.filled(target))
        ground.give(path)

    return prepare


def _led(name: str, link: str, target: str, *folders: str, entry: str = "") -> Spelling:
    worker = {"PATH": f"{entry or link}:{PATH}"}
    return Spelling(name, KEY, worker=worker, prepare=_linked(link, target, *folders))


HOME_BY_PATH = Attack(
    "home opened by an entry of PATH",
    stolen,
    (
        *(_on_path(name) for name in ("bin", "sbin", "shims", ".local/bin", ".ssh/bin", "bin/../bin", ".")),
        Spelling("a link to the home", KEY, worker={"PATH": f"@BASE@/tools/bin:{PATH}"}, prepare=_linked_bin),
        Spelling("an empty entry", KEY, worker={"PATH": f":{PATH}:"}),
        Spelling("PLANS_SANDBOX_READ of a part", KEY, worker={"PLANS_SANDBOX_READ": "@HOME@/tools"}, prepare=_directory("tools")),
        _led("an entry in the workspace, now a link", "@WS@/tools", "@HOME@/.ssh"),
        _led("the same, relative", "@WS@/node_modules/.bin", "../../../.ssh"),
        _led("in a directory of a tool in the workspace", "@WS@/.cargo/bin", "../../.ssh"),
        _led("an entry in another workspace, now a link", "@HOME@/other/tools", "@HOME@/.ssh"),
        _led("a step up from a link", "@HOME@/l", "@OPT@/a", "@OPT@/a", entry="@HOME@/l/.."),
    ),
)  # fmt: skip

SEARCH = """
import os
for top in ("@BASE@", "/proc/self/root@BASE@", "/proc/1/root@BASE@"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                print(open(os.path.join(folder, name), errors="replace").read(200))
            except OSError:
                pass
"""


def _shown(name: str, command: str, shown: str, link: str) -> Spelling:
    """A directory that PLANS_SANDBOX_READ shows, with the worker's state in it."""
    return Spelling(name, command, worker={"PLANS_SANDBOX_READ": shown}, prepare=_linked(link, "@BASE@"))


READING = Attack(
    "secrets read",
    stolen,
    (
        Spelling("a key in the home", KEY),
        Spelling("the worker's state", "cat @STATE@/secret"),
        Spelling("a link", "ln -s @HOME@/.ssh/id_rsa l; cat l"),
        Spelling("a hard link", "ln @HOME@/.ssh/id_rsa l; cat l"),
        Spelling("an archive", "tar cf loot @HOME@/.ssh @STATE@/secret"),
        Spelling("the root of another process", "cat /proc/$PPID/root@HOME@/.ssh/id_rsa; cat /proc/*/root@HOME@/.ssh/id_rsa"),
        Spelling("the directory of another process", "cd /proc/$PPID/cwd; cat ./@HOME@/.ssh/id_rsa"),
        Spelling("a search", python=SEARCH),
        _shown("shown by a link", "cat @HOME@/l/state/secret", "@HOME@/l", "@HOME@/l"),
        _shown("shown by a way up", "cat @STATE@/secret @OUT@/../state/secret", "@OUT@/..", "@HOME@/l"),
        Spelling("a move into the workspace", "mv @HOME@/.ssh/id_rsa loot || mv @HOME@/.ssh loot"),
    ),
)  # fmt: skip


def _named_file(ground: Ground) -> None:
    """A name, a link and an attribute in a hidden directory, each of which tells the canary."""
    folder = ground.home / ".ssh"
    (folder / "link").symlink_to(ground.canary)
    (folder / ground.canary).touch()
    os.setxattr(folder / "id_rsa", "user.told", ground.canary.encode())


METADATA = Attack(
    "names, links and attributes of hidden files",
    stolen,
    (
        Spelling("where a link leads", "readlink @HOME@/.ssh/link", prepare=_named_file, expected=NAMED_FOR_USER),
        Spelling("an attribute", python='import os; print(os.getxattr("@HOME@/.ssh/id_rsa", "user.told"))',
                 prepare=_named_file, expected=NAMED_FOR_USER),
        Spelling("a list of names", "ls @HOME@/.ssh", prepare=_named_file),
    ),
)  # fmt: skip

WRITING = Attack(
    "files written outside the workspace",
    written,
    (
        Spelling("a new file", "echo x > @OUT@/new"),
        Spelling("a file of the home", "echo x >> @HOME@/.bashrc; echo x >> @HOME@/.ssh/authorized_keys"),
        Spelling("the worker's state", "echo x > @STATE@/secret"),
        Spelling("a way up", "echo x > ../../outside/new; cd ..; echo x > new"),
        Spelling("a symbolic link", "ln -s @OUT@ l; echo x > l/new; ln -s @OUT@/file m; echo x > m"),
        Spelling("a hard link", "ln @OUT@/file l && echo x >> l"),
        Spelling("a deletion", "rm -f @OUT@/file; rm -rf @HOME@/.ssh"),
        Spelling("a rename into the workspace", "mv @OUT@/file here || mv @HOME@/.aws here"),
        Spelling("the workspace's own name", "mv @WS@ @WS@.old; mkdir @WS@"),
        Spelling("the root of another process", "echo x > /proc/$PPID/root@OUT@/new; echo x > /proc/self/cwd/../new"),
        Spelling("the root of every process", "for p in /proc/[0-9]*; do echo x > $p/root@OUT@/new; done"),
        Spelling("a truncation", python="import os; os.truncate('@OUT@/file', 0)"),
        Spelling("a pipe", "mkfifo @OUT@/fifo; mkdir @OUT@/dir; ln -s x @OUT@/link"),
    ),
)  # fmt: skip


def _repository(ground: Ground) -> None:
    """A repository with a submodule, a second work tree and settings, as programs make them."""
    for name, text in {
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/config": "[core]\n\tbare = false\n",
        ".git/hooks/pre-commit": "#!/bin/sh\n",
        ".git/hooks/pre-commit.sample": "#!/bin/sh\n",
        ".git/modules/m/HEAD": "ref: refs/heads/main\n",
        ".git/modules/m/config": "[core]\n",
        ".git/modules/m/hooks/post-checkout": "#!/bin/sh\n",
        ".git/config.worktree": "[core]\n",
        ".git/info/attributes": "\n",
        ".env": "A=1\n",
        "sub/.env": "A=1\n",
        "sub/deep/.env": "A=1\n",
        ".vscode/tasks.json": "{}\n",
        ".github/workflows/ci.yml": "on: push\n",
    }.items():
        ground.put(ground.workspace / name, text, 0o755 if "hooks" in name else 0o644)


def _crowd(ground: Ground) -> None:
    _repository(ground)
    for number in range(2_300):
        (ground.workspace / f".env.{number}").write_text("A=1\n")


HOOK, CONFIG, ENV, DEEP = ".git/hooks/pre-commit", ".git/config", ".env", "sub/.env"
MODULE, TREE = ".git/modules/m/hooks/post-checkout", ".git/config.worktree"
ELSEWHERE = "elsewhere/hooks/pre-commit"
DEEPEST, TASKS, CI = "sub/deep/.env", ".vscode/tasks.json", ".github/workflows/ci.yml"
EVIL = "echo evil > "


def _linked_repository(ground: Ground) -> None:
    _repository(ground)
    (ground.workspace / ".git").rename(ground.workspace / "elsewhere")
    (ground.workspace / ".git").symlink_to("elsewhere")


def _separate_repository(ground: Ground) -> None:
    _linked_repository(ground)
    (ground.workspace / ".git").unlink()
    ground.put(ground.workspace / ".git", "gitdir: elsewhere\n")


def _spelled(name: str, command: str, *targets: str, prepare: Callable[[Ground], None] = _repository) -> Spelling:
    return Spelling(name, command, prepare=prepare, judge=planted(*targets) if targets else None)


PROTECTED = Attack(
    "protected files of the workspace",
    planted(HOOK, CONFIG, ENV, DEEP),
    (
        _spelled("a hook", f"{EVIL}{HOOK}"),
        _spelled("a hook renamed over", f"{EVIL}x; mv -f x {HOOK}; cp -f x {HOOK}; ln -f x {HOOK}"),
        _spelled("git config", "git config -f .git/config core.hooksPath /evil; echo evil >> .git/config"),
        _spelled(".git moved and copied", f"mv .git x; cp -r x .git; {EVIL}{HOOK}"),
        _spelled(".git exchanged", f"cp -r .git x; {EVIL}x/hooks/pre-commit; mv .git y; mv x .git"),
        _spelled(".git replaced by a link", f"cp -r .git x; {EVIL}x/hooks/pre-commit; rm -rf .git; ln -s x .git"),
        _spelled(".git replaced by a file", "mv .git x; echo gitdir: x > .git"),
        _spelled("hooks moved", f"mv .git/hooks x; mkdir .git/hooks; {EVIL}{HOOK}"),
        _spelled("a hook of a submodule", f"{EVIL}{MODULE}", MODULE),
        _spelled("modules moved", f"mv .git/modules x; cp -r x .git/modules; {EVIL}{MODULE}", MODULE),
        _spelled("config.worktree", f"{EVIL}{TREE}", TREE),
        _spelled(".env in place", f"{EVIL}{ENV}; sed -i s/1/evil/ {ENV}"),
        _spelled(".env replaced", f"rm -f {ENV}; {EVIL}{ENV}; mv -f {ENV} x"),
        _spelled("the directory above .env moved", f"mv sub x; mkdir sub; {EVIL}{DEEP}"),
        _spelled("two directories above", f"mv sub/deep x; mkdir sub/deep; {EVIL}{DEEPEST}", DEEPEST),
        _spelled("the editor's tasks", f"mv .vscode x; mkdir .vscode; {EVIL}{TASKS}", TASKS),
        _spelled("CI definitions", f"mv .github x; cp -r x .github; {EVIL}{CI}", CI),
        _spelled("2,300 protected names before it", f"{EVIL}{HOOK}; {EVIL}{TASKS}", HOOK, TASKS, prepare=_crowd),
        _spelled(
            "a repository behind a link", f"{EVIL}{HOOK}; {EVIL}{ELSEWHERE}", ELSEWHERE, prepare=_linked_repository
        ),
        _spelled("a repository elsewhere", f"{EVIL}{ELSEWHERE}", ELSEWHERE, prepare=_separate_repository),
        _spelled(
            "a pointer to a repository",
            "echo gitdir: x > .git; rm -f .git; mv x .git",
            ".git",
            prepare=_separate_repository,
        ),
        _spelled("a mount undone", f"umount -l .git/hooks .git .env; unshare -Urm umount -l .git; {EVIL}{HOOK}"),
    ),
    expected=NAMED,
)

FILE_ATTACKS = (HOME_BY_PATH, READING, METADATA, WRITING, PROTECTED)

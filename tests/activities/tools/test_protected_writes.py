"""File tools ask before they write a name that runs code later: each name, existing or not, however it is spelt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment, environment_of
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.plans.file_stamps import Stamp, stamp_of
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.runtime.settings import Settings
from tests.activities.attempts import Attempts

NAMES = (Path(__file__).parent / "run_later.txt").read_text().split()
ORDINARY = (
    "src/main.py", "README.md", "docs/index.md", "data.csv", "notes.txt", ".gitignore", ".env.example", "build/out.js",
    "lib/config.py", "tests/test_x.py", "environment.md", "workspace/x.txt", "dune/notes.txt", "git/hooks/pre-commit",
    "github/workflows/ci.yml", "x.path.txt", "head/body.txt", "claude/notes.md", "script.sh", "index.html",
)  # fmt: skip
SPELLINGS = {
    "letter case": ".GIT/hooks/x",
    "a trailing dot": ".git./hooks/x",
    "an invisible character": ".g\u200cit/hooks/x",
    "another one": ".git\ufeff/hooks/x",
    "one that only ext4 leaves out": ".gi\ufe0ft/hooks/x",
    "full width": "\uff0egit/hooks/x",
    "the Kelvin sign": "Ma\u212aefile",
    "the long s": "\u017fetup.py",
    "decomposed": "c\u0061fe/Makefile",
    "a stream": ".git::$INDEX_ALLOCATION/hooks/x",
    "a stream of a file": "Makefile::$DATA",
    "a backslash": ".git\\hooks\\x",
    "a short name": "GIT~1/hooks/x",
    "a long short name": "gi7eba~1",
    "dots in between": "a/../.git/./hooks/x",
    "nested": "a/b/c/d/e/.git/hooks/x",
}


def contents(attempts: Attempts) -> dict[str, str]:
    return {
        str(path.relative_to(attempts.workspace)): path.read_text()
        for path in attempts.workspace.rglob("*")
        if path.is_file()
    }


def test_there_are_at_least_as_many_names_as_an_attack_once_wrote() -> None:
    assert len(set(NAMES)) >= 104


@pytest.mark.slow
@pytest.mark.sampled
async def test_no_name_that_runs_later_is_written_unasked_whether_it_exists_or_not(attempts: Attempts) -> None:
    asking = attempts.but(approved=False)
    for path in NAMES:
        assert await asking.code("write_file", path=path, content="evil") == "APPROVAL_REQUIRED", path
    assert contents(attempts) == {}
    for path in NAMES:
        (attempts.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (attempts.workspace / path).write_text("good")
    known: dict[str, Stamp] = {path: stamp_of(b"good") for path in NAMES}
    read = asking.but(stamps=known)  # so that only the name can be the reason to ask
    for path in NAMES:
        assert await read.code("write_file", path=path, content="evil") == "APPROVAL_REQUIRED", path
        assert await read.code("edit_file", path=path, oldText="good", newText="evil") == "APPROVAL_REQUIRED", path
    assert set(contents(attempts).values()) == {"good"}


async def test_a_person_can_approve_each_of_them_and_the_request_names_file_and_reason(attempts: Attempts) -> None:
    error = await attempts.but(approved=False).error("write_file", path="sub/Makefile", content="x")
    assert "'sub/Makefile' (Make and its kind) may run code at the next build" in error.message
    for path in NAMES[::9]:
        await attempts.run("write_file", path=path, content="x")
    assert len(contents(attempts)) == len(NAMES[::9])


async def test_ordinary_names_are_written_unasked(attempts: Attempts) -> None:
    for path in ORDINARY:
        await attempts.but(approved=False).run("write_file", path=path, content="x")
    assert set(contents(attempts)) == set(ORDINARY)


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_other_spellings_that_a_file_system_takes_for_the_same_name_ask(
    attempts: Attempts, spelling: str
) -> None:
    asking = attempts.but(approved=False)
    assert await asking.code("write_file", path=SPELLINGS[spelling], content="x") in (
        "APPROVAL_REQUIRED",
        "PATH_INVALID",
    )
    assert contents(attempts) == {}


def linked_folder(workspace: Path) -> str:
    (workspace / ".claude").mkdir()
    (workspace / "plain").symlink_to(".claude")
    return "plain/settings.json"


def linked_file(workspace: Path) -> str:
    (workspace / "notes.txt").symlink_to("sub/Makefile")
    return "notes.txt"


def chain_of_links(workspace: Path) -> str:
    (workspace / "one").symlink_to("two")
    (workspace / "two").symlink_to(workspace / ".venv")
    (workspace / ".venv").mkdir()
    return "one/x.py"


def link_with_such_a_name(workspace: Path) -> str:
    (workspace / "plain").mkdir()
    (workspace / ".husky").symlink_to("plain")
    return ".husky/pre-commit"


@pytest.mark.parametrize("prepare", [linked_folder, linked_file, chain_of_links, link_with_such_a_name])
async def test_links_hide_no_such_name(attempts: Attempts, prepare: Callable[[Path], str]) -> None:
    path = prepare(attempts.workspace)
    assert await attempts.but(approved=False).code("write_file", path=path, content="x") == "APPROVAL_REQUIRED"


async def test_directories_of_such_names_ask_too_and_deletions_always_do(attempts: Attempts) -> None:
    asking = attempts.but(approved=False)
    for path in (".git", ".git/hooks", "a/.venv", ".devcontainer", ".github", "x/site-packages", ".bashrc"):
        assert await asking.code("create_directory", path=path) == "APPROVAL_REQUIRED", path
    for path in ("build", "workspace", "plain/deep"):
        assert await asking.value("create_directory", path=path) == {"path": path, "created": True}
    (attempts.workspace / "conftest.py").write_text("x")
    assert await asking.code("delete_file", path="conftest.py") == "APPROVAL_REQUIRED"


async def test_a_workspace_inside_such_a_directory_asks_for_every_file(attempts: Attempts) -> None:
    inside = attempts.workspace / "node_modules" / "pkg"
    inside.mkdir(parents=True)
    asking = attempts.but(approved=False, workspace=inside)
    assert await asking.code("write_file", path="index.js", content="x") == "APPROVAL_REQUIRED"
    await attempts.but(approved=False).run("write_file", path="index.js", content="x")


async def test_the_worker_adds_patterns_and_takes_some_away(attempts: Attempts, tmp_path: Path) -> None:
    text = "*.sql, /top, config/*.key, !Makefile, !.vscode, .vscode/tasks.json"
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_PROTECTED": text, "PLANS_SANDBOX": "off"})
    site = environment_of(settings, Effects.at(tmp_path / "effects"))
    own = attempts.but(approved=False, site=site)
    for path in ("a/drop.SQL", "top/x/y", "deep/config/tls.key", ".vscode/tasks.json", "conftest.py"):
        error = await own.error("write_file", path=path, content="x")
        assert error.type == "APPROVAL_REQUIRED", path
    assert "PLANS_PROTECTED" in (await own.error("write_file", path="x.sql", content="x")).message
    for path in ("Makefile", ".vscode/settings.json", "sub/top/x", "config/tls.txt"):
        await own.run("write_file", path=path, content="x")
    assert await attempts.but(approved=False).code("write_file", path="Makefile", content="x") == "APPROVAL_REQUIRED"


async def test_commands_may_write_what_runs_later_and_the_step_says_so(attempts: Attempts, tmp_path: Path) -> None:
    site = ToolEnvironment(sandbox=choose("off"), watcher=Watcher(tmp_path / "state", names=ProtectedNames(("!*.mk",))))
    command = "mkdir -p sub; touch sub/Makefile rules.mk plain.txt"
    (warning,) = (await attempts.but(site=site).run("run_command", command=command)).warnings
    assert (
        warning
        == "files that may run code later were created or changed while the command ran: 'sub/Makefile'; check them"
    )
    assert (
        await attempts.but(site=site).run("run_command", command="cat sub/Makefile; echo x > plain.txt")
    ).warnings == []


async def test_the_code_of_the_workers_own_tools_is_not_written_unasked(attempts: Attempts, tmp_path: Path) -> None:
    code = attempts.workspace / "tools" / "mine.py"
    code.parent.mkdir()
    code.write_text("x = 1")
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_TOOLS": str(code), "PLANS_SANDBOX": "off"})
    site = replace(environment_of(settings, Effects.at(tmp_path / "effects")), rules=None)
    own = attempts.but(approved=False, site=site, stamps={"tools/mine.py": stamp_of(b"x = 1")})
    error = await own.error("write_file", path="tools/mine.py", content="evil")
    assert (error.type, "tools of this worker" in error.message) == ("APPROVAL_REQUIRED", True)
    await own.run("write_file", path="tools/other.py", content="x")
    await attempts.but(approved=False, stamps=own.stamps).run("write_file", path="tools/mine.py", content="control")

"""Commands that make, change and delete files of any name: the step has them on record, and undo takes them back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.lifecycle.snapshot_workspace import SnapshotTaker
from plansurvive.activities.provenance.watcher import Undo, Watcher
from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.features.files.file_changes import FileChanges
from plansurvive.features.files.model import ChangesReport, ChangesRequest
from plansurvive.plans.llm.snapshot import SnapshotRequest
from tests.activities.attempts import Attempts

MADE = {
    b"x\xffy": r"x\xffy",
    b"caf\xe9.txt": r"caf\xe9.txt",
    b"two\nlines": "two\nlines",
    b"tab\there": "tab\there",
    b"\xed\xa0\x80": r"\xed\xa0\x80",
    b"back\\xffslash": r"back\x5cxffslash",
    b"-rf": "-rf",
    b" ": " ",
    b"~/x": "~/x",
    b"C:\\x": r"C:\x",
    b"http:/x": "http:/x",
    "日本".encode("euc-jp"): r"\xc6\xfc\xcb\xdc",
    b"d\xfe/deep\xfd": r"d\xfe/deep\xfd",
}


class Recorded:
    """Steps of one plan, watched, and its changes."""

    def __init__(self, attempts: Attempts, state: Path, undo: Undo) -> None:
        watcher = Watcher(state, undo)
        site = ToolEnvironment(sandbox=choose("off"), watcher=watcher)
        self.attempts = attempts.but(site=site, run_id="plan-p/12345678")
        self.changes = FileChanges(attempts.effects, watcher.journal)

    def undo(self) -> ChangesReport:
        return self.changes.answer(ChangesRequest(plan_id="p", undo=True, dry_run=False))


@pytest.fixture(params=["files", "full"])
def recorded(attempts: Attempts, state_dir: Path, request: pytest.FixtureRequest) -> Recorded:
    return Recorded(attempts, state_dir, request.param)


def odd(workspace: Path, name: bytes) -> Path:
    return workspace / os.fsdecode(name)


def contents(workspace: Path) -> dict[bytes, bytes]:
    """What is in the workspace: the content of files, the target of links."""
    found = [path for path in workspace.rglob("*") if path.is_symlink() or path.is_file()]
    return {
        os.fsencode(path.relative_to(workspace)): b"-> " + os.fsencode(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        for path in found
    }


def written(name: bytes, text: str) -> str:
    """A shell command that writes a file, whose own text is plain ASCII."""
    octal = "".join(f"\\{byte:03o}" for byte in b"./" + name)
    return f'f="$(printf \'{octal}_\')"; f="${{f%_}}"; mkdir -p "$(dirname "$f")"; printf \'{text}\' > "$f"\n'


async def test_files_of_any_name_are_on_record_with_their_step_and_can_be_undone(recorded: Recorded) -> None:
    workspace = recorded.attempts.workspace
    command = "echo run >> count\n" + "".join(written(name, "new") for name in MADE)
    returned = await recorded.attempts.run("run_command", command=command)
    assert returned.model_dump_json()
    assert set(returned.wrote) == {"count", *MADE.values()}
    assert (workspace / "count").read_text() == "run\n"
    report = recorded.changes.answer(ChangesRequest(plan_id="p"))
    assert report.model_dump_json()
    assert {change.path for call in report.calls for change in call.changes} >= set(MADE.values())
    restored = recorded.undo()
    assert (restored.refused, contents(workspace)) == ([], {})


async def test_what_was_there_before_comes_back(recorded: Recorded) -> None:
    workspace = recorded.attempts.workspace
    for folder in (b"d\xfe", b"~", b"http:"):
        odd(workspace, folder).mkdir()
    for name in MADE:
        odd(workspace, name).write_text("old")
    (workspace / "link").symlink_to(os.fsdecode(b"to\xff"))
    before = contents(workspace)
    for path in MADE.values():
        await recorded.attempts.run("read_file", path=f"./{path}")
    command = "".join(written(name, "new") for name in MADE) + "rm -f ./x*y ./caf* ./-rf"
    returned = await recorded.attempts.run("run_command", command=command)
    assert set(returned.deleted) == {r"x\xffy", r"caf\xe9.txt", "-rf"}
    for path in (r"d\xfe/deep\xfd", "two\nlines", r"\xc6\xfc\xcb\xdc"):
        await recorded.attempts.run("read_file", path=path)
        await recorded.attempts.run("edit_file", path=path, oldText="new", newText="newer")
    assert contents(workspace) != before
    report = recorded.undo()
    assert report.refused == []
    assert contents(workspace) == before


async def test_links_to_such_names_are_restored(attempts: Attempts, state_dir: Path) -> None:
    recorded = Recorded(attempts, state_dir, "full")
    link = attempts.workspace / "link"
    link.symlink_to(os.fsdecode(b"to\xff"))
    await recorded.attempts.run("delete_file", path="link")
    assert not link.is_symlink()
    assert recorded.undo().refused == []
    assert os.fsencode(link.readlink()) == b"to\xff"


async def test_protected_names_below_such_a_directory_are_guarded_all_the_same(recorded: Recorded) -> None:
    folder = odd(recorded.attempts.workspace, b"d\xfe")
    folder.mkdir()
    (folder / ".env").write_text("A=1")
    seen: list[list[str]] = []

    @tool(approval="never")
    def look(context: ToolContext) -> str:
        """Look at what is guarded."""
        seen.append(context.protected)
        return "ok"

    await recorded.attempts.run(look)
    assert str(folder / ".env") in seen[0]
    command = "cd d*; echo B=2 >> .env; touch Makefile"
    strict, later = (await recorded.attempts.run("run_command", command=command)).warnings
    assert r"'d\xfe/.env'" in strict
    assert r"'d\xfe/Makefile'" in later


async def test_tools_may_report_names_as_the_operating_system_gives_them(recorded: Recorded) -> None:
    @tool(effect="keyed")
    def save(context: ToolContext) -> str:
        """Write a file with an odd name."""
        name = os.fsdecode(b"own\xff")
        Path(context.workspace.root, name).write_text("x")
        context.wrote(name)
        context.warn(f"wrote {name}")
        return "ok"

    returned = await recorded.attempts.run(save)
    assert (list(returned.wrote), returned.warnings) == ([r"own\xff"], [r"wrote own\udcff"])
    assert returned.model_dump_json()


def test_the_llm_is_shown_such_names_too(workspace: Path) -> None:
    odd(workspace, b"d\xfe").mkdir()
    odd(workspace, b"d\xfe/x\xff").write_text("content")
    text = SnapshotTaker().take(SnapshotRequest(workspace=str(workspace))).text
    assert r"d\xfe/x\xff" in text
    assert "content" in text

"""Large files, hashed in pieces: what others change in them is a conflict, wherever and however they do it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from plansurvive.activities.provenance.journal import Journal
from plansurvive.activities.tools.file_change import NewContent, changing
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.files.file_changes import FileChanges
from plansurvive.features.files.model import ChangesRequest
from plansurvive.plans.errors import ToolError
from tests.activities.attempts import Attempts

MIB = 1024 * 1024
MIDDLE = 10 * MIB + MIB // 2
"""Far from the beginning of any MiB: nothing that looks at parts of a file would look there."""
TOOLS = [("write_file", {"content": "short"}), ("delete_file", {})]


def make(path: Path, size: int) -> None:
    """A sparse file with a line at its beginning, and time stamps of long ago."""
    with path.open("wb") as file:
        file.write(b"first line\n")
        file.truncate(size)
    os.utime(path, (1, 1))


async def known(attempts: Attempts) -> Attempts:
    """Attempts of a run that has just read some lines of the file; a person has approved whatever it does."""
    read = await attempts.run("read_file", path="big.txt", limit=1)
    assert read.value == "first line\n"
    return attempts.but(stamps=read.read, approved=True)


def in_place(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(MIDDLE)
        file.write(b"CHANGED")


def renamed_over(path: Path) -> None:
    path.with_name("copy").write_bytes(path.read_bytes())
    in_place(path.with_name("copy"))
    path.with_name("copy").rename(path)


def made_again(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    in_place(path)


def through_another_name(path: Path) -> None:
    path.with_name("second").hardlink_to(path)
    in_place(path.with_name("second"))
    path.with_name("second").unlink()


def appended_and_cut(path: Path) -> None:
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"more")
    os.truncate(path, MIDDLE)
    os.truncate(path, size - 1)
    with path.open("ab") as file:
        file.write(b"!")


CHANGES: list[Callable[[Path], None]] = [in_place, renamed_over, made_again, through_another_name, appended_and_cut]


@pytest.mark.parametrize(("tool", "args"), TOOLS)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_large_file_changed_in_the_middle_with_the_same_size_and_times_is_a_conflict(
    attempts: Attempts, change: Callable[[Path], None], tool: str, args: dict[str, str]
) -> None:
    path = attempts.workspace / "big.txt"
    make(path, 70 * MIB)
    after_read, times = await known(attempts), path.stat()
    change(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (times.st_size, times.st_mtime_ns)
    error = await after_read.error(tool, path="big.txt", **args)
    assert (error.type, "modified since last read" in error.message) == ("CONFLICT", True)
    assert path.stat().st_size == 70 * MIB
    assert [each.name for each in attempts.workspace.iterdir()] == ["big.txt"]


@pytest.mark.parametrize("size", [2 * MIB, 17 * MIB, 64 * MIB, 64 * MIB + 1, 70 * MIB])
async def test_a_file_of_any_size_that_was_only_touched_is_no_conflict(attempts: Attempts, size: int) -> None:
    path = attempts.workspace / "big.txt"
    make(path, size)
    after_read = await known(attempts)
    os.utime(path)
    await after_read.run("write_file", path="big.txt", content="short")
    assert path.read_text() == "short"


async def test_another_host_and_a_worker_that_was_restarted_find_the_same_conflict(
    attempts: Attempts, tmp_path: Path
) -> None:
    path = attempts.workspace / "big.txt"
    make(path, 70 * MIB)
    after_read = await known(attempts)
    in_place(path)
    for state in (attempts.effects.log.path.parent, tmp_path / "state of another host"):
        restarted = after_read.but(effects=Effects.at(state))
        assert await restarted.code("write_file", path="big.txt", content="short") == "CONFLICT"
        assert await restarted.code("delete_file", path="big.txt") == "CONFLICT"


@pytest.mark.parametrize("size", [17 * MIB, 70 * MIB])
def test_a_large_file_changed_between_our_look_and_our_write_stays(attempts: Attempts, size: int) -> None:
    path = attempts.workspace / "big.txt"
    make(path, size)
    for act in ("write", "delete"):
        with changing(attempts.context(), "big.txt") as change:
            change.check()
            in_place(path)
            with pytest.raises(ToolError, match="modified since last read") as caught:
                change.write(NewContent.of("new", change.context), {}) if act == "write" else change.delete({})
        assert caught.value.code == "CONFLICT"
        assert path.stat().st_size == size
        make(path, size)


async def test_what_another_step_of_the_run_did_with_a_large_file_is_known(attempts: Attempts) -> None:
    path = attempts.workspace / "big.txt"
    make(path, 70 * MIB)
    after_read = await known(attempts)
    await after_read.run("write_file", path="big.txt", content="short")
    await after_read.run("write_file", path="big.txt", content="shorter")
    in_another_run = after_read.but(run_id="plan-q")
    assert await in_another_run.code("write_file", path="big.txt", content="longer") == "CONFLICT"


def undo(attempts: Attempts, *, dry_run: bool) -> list[tuple[str, str]]:
    """What undo restores or refuses of plan `p`, with the code of a refusal."""
    changes = FileChanges(attempts.effects, Journal(attempts.workspace.parent / "journal"))
    report = changes.answer(ChangesRequest(plan_id="p", undo=True, dry_run=dry_run))
    return [(each.path, "") for each in report.restored] + [(each.path, each.code) for each in report.refused]


async def test_undo_says_before_it_begins_that_a_large_file_was_not_kept(attempts: Attempts) -> None:
    path = attempts.workspace / "big.txt"
    make(path, 70 * MIB)
    written = await (await known(attempts)).run("write_file", path="big.txt", content="short")
    assert [note for note in written.warnings if "plan undo cannot restore it" in note]
    assert undo(attempts, dry_run=True) == undo(attempts, dry_run=False) == [("big.txt", "NOT_KEPT")]
    path.write_text("theirs")
    assert undo(attempts, dry_run=True) == [("big.txt", "CONFLICT")]


def test_undo_removes_a_large_file_that_the_run_made_unless_somebody_has_changed_it(attempts: Attempts) -> None:
    path, context = attempts.workspace / "big.txt", attempts.but(step="make").context()
    with changing(context, "big.txt") as change:
        change.write(NewContent(context, 70 * MIB, b"x" * (70 * MIB)), {})
    times = path.stat()
    in_place(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert undo(attempts, dry_run=True) == undo(attempts, dry_run=False) == [("big.txt", "CONFLICT")]
    with path.open("r+b") as file:
        file.seek(MIDDLE)
        file.write(b"xxxxxxx")
    assert undo(attempts, dry_run=False) == [("big.txt", "")]
    assert not path.exists()


@pytest.mark.slow
async def test_a_file_of_3_gib_changed_in_the_middle_is_a_conflict_and_is_read_twice_to_be_replaced(
    attempts: Attempts,
) -> None:
    path = attempts.workspace / "big.txt"
    make(path, 3 * 1024 * MIB)
    after_read, times = await known(attempts.but(timeout=600.0)), path.stat()
    in_place(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    for tool, args in TOOLS:
        assert await after_read.code(tool, path="big.txt", **args) == "CONFLICT"
    make(path, 3 * 1024 * MIB)
    before = bytes_read()
    await after_read.run("write_file", path="big.txt", content="short")
    assert (bytes_read() - before) // MIB in range(2 * 3 * 1024, 2 * 3 * 1024 + 64)
    assert path.read_text() == "short"


def bytes_read() -> int:
    """Bytes that this process has read so far, from wherever."""
    return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])  # type: ignore[index]

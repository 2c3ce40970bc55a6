"""Changing a file that somebody else may have changed: the integration cases of seed 003, and races."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.tools.file_change import NewContent, changing
from plansurvive.plans.errors import ToolError
from plansurvive.plans.file_stamps import FileTracker, Stamp, stamp_of
from tests.activities.attempts import Attempts


def names(directory: Path) -> list[str]:
    """What is in a directory, hidden files too."""
    return sorted(path.name for path in directory.iterdir())


async def read(attempts: Attempts, path: str = "x") -> Attempts:
    """Attempts of a run that has just read the file."""
    result = await attempts.run("read_file", path=path)
    return attempts.but(approved=False, stamps=result.read)


async def test_read_file(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("content")
    result = await attempts.run("read_file", path="x")
    assert result.read == {"x": stamp_of(b"content")}


async def test_read_file_marks_tracked(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("content")
    tracker = FileTracker(stamps=(await attempts.run("read_file", path="x")).read)
    assert not tracker.has_been_modified_since_read("x", (attempts.workspace / "x").read_bytes())


async def test_edit_file(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("one\ntwo\nthree\n")
    after_read = await read(attempts)
    (attempts.workspace / "x").write_text("one\n2\nthree\n")
    error = await after_read.error("edit_file", path="x", oldText="three", newText="3")
    assert (error.type, error.non_retryable) == ("CONFLICT", True)
    for words in ("'x'", "modified since last read", "read_file again", "-two\n+2"):
        assert words in error.message
    assert (attempts.workspace / "x").read_text() == "one\n2\nthree\n"
    assert names(attempts.workspace) == ["x"]


test_edit_file_blocked_after_external_modification = test_edit_file


async def test_edit_file_success_path(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("one")
    after_read = await read(attempts)
    edited = await after_read.run("edit_file", path="x", oldText="one", newText="two")
    assert edited.wrote == {"x": stamp_of(b"two")}
    after_edit = after_read.but(stamps=edited.wrote)
    assert (await after_edit.run("edit_file", path="x", oldText="two", newText="three")).value["path"] == "x"


async def test_edit_file_new_file_creation_is_allowed(attempts: Attempts) -> None:
    made = await attempts.but(approved=False).run("edit_file", path="new", oldText="", newText="text")
    assert made.wrote == {"new": stamp_of(b"text").model_copy(update={"made": True})}
    assert (attempts.workspace / "new").read_text() == "text"


async def test_content_hash_avoids_false_positive(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("one")
    after_read = await read(attempts)
    os.utime(attempts.workspace / "x", (1, 1))
    await after_read.run("edit_file", path="x", oldText="one", newText="two")
    assert (attempts.workspace / "x").read_text() == "two"


def rewrite(path: Path) -> None:
    path.write_text("theirs\n")


def to_crlf(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def to_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_link(path: Path) -> None:
    path.rename(path.with_name("target"))
    path.symlink_to("target")


def to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES: list[tuple[Callable[[Path], Any], str]] = [
    (rewrite, "modified since last read"),
    (to_crlf, "only the line endings differ"),
    (Path.unlink, "was deleted since it was read"),
    (to_directory, "it is now a directory"),
    (to_link, "it is now a link"),
    (to_pipe, "it is now a pipe"),
    (lambda path: path.write_bytes(b"\0" * 9), "it had 6 bytes, now 9"),
]
TOOLS: list[tuple[str, dict[str, str]]] = [
    ("edit_file", {"oldText": "ours", "newText": "new"}),
    ("write_file", {"content": "new"}),
    ("delete_file", {}),
]


@pytest.mark.parametrize(("tool", "args"), TOOLS)
@pytest.mark.parametrize(("change", "words"), CHANGES)
async def test_a_file_that_is_not_as_the_run_saw_it_is_left_alone(
    attempts: Attempts, tool: str, args: dict[str, str], change: Callable[[Path], Any], words: str
) -> None:
    path = attempts.workspace / "x"
    path.write_text("ours\n\n")
    after_read = (await read(attempts)).but(approved=True)
    change(path)
    before = names(attempts.workspace)
    error = await after_read.error(tool, path="x", **args)
    assert (error.type, error.non_retryable) in (
        ("CONFLICT", True),
        *((("NOT_FOUND", True), ("NOT_REGULAR", True)) if tool == "delete_file" else ()),
    )
    assert words in error.message or error.type != "CONFLICT" or (tool, change) == ("delete_file", to_link)
    assert names(attempts.workspace) == before


async def test_a_diff_is_bounded(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("".join(f"{number}\n" for number in range(5_000)))
    after_read = await read(attempts)
    (attempts.workspace / "x").write_text("".join(f"line {number} {'y' * 900}\n" for number in range(200)))
    error = await after_read.error("edit_file", path="x", oldText="7", newText="8")
    assert len(error.message) < 5_000
    assert re.search(r"\n\.\.\. [\d,]+ more lines\n", error.message)
    assert error.message.endswith("call read_file again, then retry")


async def test_a_stale_file_must_be_read_again_even_if_it_looks_the_same(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("one")
    after_read = await read(attempts)
    stale = {"x": after_read.stamps["x"].model_copy(update={"state": "stale"})}
    error = await after_read.but(stamps=stale).error("edit_file", path="x", oldText="one", newText="two")
    assert error.type == "CONFLICT"
    assert "read_file again" in error.message
    (attempts.workspace / "x").unlink()
    error = await after_read.but(stamps=stale).error("edit_file", path="x", oldText="one", newText="two")
    assert "was deleted since it was read" in error.message


async def test_an_untracked_file_may_be_edited_unless_edits_are_strict(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("one")
    strict = attempts.but(effects=type(attempts.effects)(**{**vars(attempts.effects), "strict": True}))
    assert await strict.code("edit_file", path="x", oldText="one", newText="two") == "NOT_READ"
    await attempts.run("edit_file", path="x", oldText="one", newText="two")
    after_read = (await read(attempts)).but(effects=strict.effects)
    await after_read.run("edit_file", path="x", oldText="two", newText="three")
    await strict.run("edit_file", path="new", oldText="", newText="made")


async def test_the_run_s_own_changes_are_no_conflict_those_of_another_run_are(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("a b c")
    after_read = await read(attempts)
    await after_read.run("edit_file", path="x", oldText="a", newText="1")
    await after_read.run("edit_file", path="x", oldText="b", newText="2")
    other = after_read.but(run_id="plan-q")
    assert await other.code("edit_file", path="x", oldText="c", newText="3") == "CONFLICT"
    (attempts.workspace / "x").write_text("1 2 c theirs")
    assert await after_read.code("edit_file", path="x", oldText="c", newText="3") == "CONFLICT"


async def test_parallel_edits_of_one_file_are_made_one_after_the_other(attempts: Attempts) -> None:
    (attempts.workspace / "x").write_text("".join(f"<{number}>\n" for number in range(20)))
    after_read = await read(attempts)
    edits = (after_read.run("edit_file", path="x", oldText=f"<{n}>", newText=f"[{n}]") for n in range(20))
    await asyncio.gather(*edits)
    assert (attempts.workspace / "x").read_text() == "".join(f"[{number}]\n" for number in range(20))
    assert names(attempts.workspace) == ["x"]


@pytest.mark.slow
@pytest.mark.sampled
async def test_no_save_of_an_editor_is_lost_beside_racing_edits(attempts: Attempts) -> None:
    """An editor that adds one line per save, by rename, races with edits of the same file: both are all there."""
    path, stop, saves = attempts.workspace / "x", threading.Event(), 0
    path.write_text("ours 0\n")

    def editor() -> None:
        nonlocal saves
        while not stop.is_set() and saves < 300:
            before = path.read_bytes()
            if saves and f"save {saves - 1}\n".encode() not in before:
                continue  # an edit that is being taken back at this moment; who misses his last save does not save
            path.with_name("save").write_bytes(before + f"save {saves}\n".encode())
            if path.read_bytes() == before:  # an editor looks, too
                path.with_name("save").rename(path)
                saves += 1
            stop.wait(0.002)

    thread = threading.Thread(target=editor)
    thread.start()
    done = 0
    for _ in range(60):
        try:
            await attempts.run("edit_file", path="x", oldText=f"ours {done}\n", newText=f"ours {done + 1}\n")
            done += 1
        except ApplicationError as error:
            assert error.type in ("CONFLICT", "EDIT_NO_MATCH"), error  # noqa: PT017
            text = path.read_text()
            done = int(text.partition("\n")[0].removeprefix("ours "))
    stop.set()
    thread.join()
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("save")] == [f"save {number}" for number in range(saves)]
    assert [name for name in names(attempts.workspace) if name.startswith(".plans")] == []


def save(path: Path, text: str) -> None:
    """As an editor does it: a new file, renamed over the old one."""
    path.with_name("save").write_text(text)
    path.with_name("save").rename(path)


@pytest.mark.parametrize("before", ["ours", None])
def test_a_save_between_our_look_and_our_swap_stays(attempts: Attempts, before: str | None) -> None:
    path = attempts.workspace / "x"
    if before:
        path.write_text(before)
    with changing(attempts.context("edit_file"), "x") as change:
        save(path, "theirs")
        with pytest.raises(ToolError, match="modified since last read") as caught:
            change.write(NewContent.of("new", change.context), {})
    assert caught.value.code == "CONFLICT"
    assert path.read_text() == "theirs"
    assert names(attempts.workspace) == ["x"]


def test_a_save_between_our_look_and_our_deletion_stays(attempts: Attempts) -> None:
    path = attempts.workspace / "x"
    path.write_text("ours")
    with changing(attempts.context("delete_file"), "x") as change:
        save(path, "theirs")
        with pytest.raises(ToolError, match="modified since last read"):
            change.delete({})
    assert path.read_text() == "theirs"
    assert names(attempts.workspace) == ["x"]


async def test_some_lines_of_a_long_file_are_read_and_all_of_it_is_stamped(attempts: Attempts) -> None:
    lines = [f"line {number}\n" for number in range(400_000)]
    (attempts.workspace / "x").write_text("".join(lines))
    for offset, limit in ((0, 3), (200_000, 2), (399_999, 5), (400_001, 5), (7, 0)):
        result = await attempts.run("read_file", path="x", offset=offset, limit=limit)
        assert result.value == "".join(lines[offset : offset + limit])
        assert result.read == {"x": stamp_of((attempts.workspace / "x").read_bytes())}


async def test_a_linked_file_is_known_as_one(attempts: Attempts) -> None:
    (attempts.workspace / "target").write_text("one")
    (attempts.workspace / "x").symlink_to("target")
    after_read = await read(attempts)
    assert after_read.stamps == {"x": Stamp(**{**dict(stamp_of(b"one")), "linked": True})}
    await after_read.run("edit_file", path="x", oldText="one", newText="two")
    assert (attempts.workspace / "target").read_text() == "two"
    assert (attempts.workspace / "x").is_symlink()

"""The agents.md that come with a file: which, in what order, how much, and what is only a warning."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plansurvive.plans.activity_io import Return
from plansurvive.plans.file_stamps import NOTES_BYTES
from plansurvive.plans.large_value import LargeValue
from tests.activities.attempts import Attempts


def lay(workspace: Path, **texts: str) -> None:
    """Files, `__` in a name standing for a slash, with a file src/tools/x to read."""
    for name, text in {"src__tools__x": "content", **texts}.items():
        path = workspace / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def brought(result: Return) -> list[tuple[str, str | None]]:
    """The notes a call brought in."""
    return [(note.path, note.text) for note in result.notes]


async def test_agents_md_injected_once(attempts: Attempts) -> None:
    lay(attempts.workspace, src__agents_md="outer", src__tools__agents_md="inner", src__tools__y="other")
    first = await attempts.run("read_file", path="src/tools/x")
    assert brought(first) == [("src/agents.md", "outer"), ("src/tools/agents.md", "inner")]
    seen = attempts.but(notes_seen=[note.path for note in first.notes])
    assert brought(await seen.run("read_file", path="src/tools/y")) == []
    assert brought(await attempts.run("read_file", path="src/tools/y")) == brought(first)


async def test_a_parent_seen_before_is_left_out(attempts: Attempts) -> None:
    lay(attempts.workspace, AGENTS_md="top", src__tools__AGENTS_md="inner")
    seen = attempts.but(notes_seen=["AGENTS.md"])
    assert brought(await seen.run("read_file", path="src/tools/x")) == [("src/tools/AGENTS.md", "inner")]


async def test_of_two_spellings_one_counts_and_it_is_said_which(attempts: Attempts) -> None:
    lay(attempts.workspace, src__AGENTS_md="big", src__agents_md="small")
    result = await attempts.run("read_file", path="src/tools/x")
    assert brought(result) == [("src/AGENTS.md", "big")]
    assert result.warnings == [
        "'src/AGENTS.md' was loaded and 'src/agents.md' beside it ignored: only one per directory is used"
    ]


async def test_nothing_above_the_workspace_is_read(attempts: Attempts) -> None:
    (attempts.workspace.parent / "AGENTS.md").write_text("of somebody else")
    lay(attempts.workspace)
    assert brought(await attempts.run("read_file", path="src/tools/x")) == []


async def test_what_is_too_long_is_cut_and_that_is_said(attempts: Attempts) -> None:
    lay(attempts.workspace, AGENTS_md="ä" * 17_000, src__AGENTS_md="more")
    result = await attempts.run("read_file", path="src/tools/x")
    first, second = result.notes
    assert (first.bytes, first.cut) == (NOTES_BYTES, True)
    assert isinstance(first.large, LargeValue)
    assert await attempts.values.get(first.large) == "ä" * (NOTES_BYTES // 2)
    assert (second.bytes, second.text, second.cut) == (0, "", True)
    assert len(result.warnings) == 2
    assert f"truncated to {NOTES_BYTES} bytes" in result.warnings[0]


def outside(path: Path) -> None:
    target = path.parent.parent / "outside"
    target.write_text("secret")
    path.symlink_to(target)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1024**3)


UNUSABLE: list[tuple[Callable[[Path], Any], str]] = [
    (outside, "outside the workspace"),
    (os.mkfifo, "not a regular file"),
    (Path.mkdir, "is a directory"),
    (huge, "binary data"),
    (lambda path: path.write_bytes(b"caf\xe9"), "not UTF-8"),
    (lambda path: path.write_bytes(b"\xff\xfea\0"), "binary data"),
    (lambda path: path.symlink_to("AGENTS.md"), "more than 40 links"),
]


@pytest.mark.parametrize(("make", "words"), UNUSABLE)
async def test_what_cannot_be_taken_in_is_a_warning_and_the_file_is_read(
    attempts: Attempts, make: Callable[[Path], Any], words: str
) -> None:
    lay(attempts.workspace)
    make(attempts.workspace / "AGENTS.md")
    result = await attempts.run("read_file", path="src/tools/x")
    assert result.value == "content"
    assert brought(result) == []
    assert len(result.warnings) == 1
    assert "'AGENTS.md' was not loaded" in result.warnings[0]
    assert words in result.warnings[0]

"""Unified diffs: as `diff -u` has them, and never longer than their bounds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.activities.workspace.text_diff import Bounds, content_diff, unified_diff

BOUNDS = Bounds(lines=10, characters=200, line_characters=20, compared_bytes=5_000)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("", "new\n"),
        ("a\n", ""),
        ("a\nb", "a\nb\n"),
        ("a\r\nb\r\n", "a\nb\r\n"),
        ("a\u2028b\n", "a\u2028c\n"),
    ],
)
def test_patch_makes_the_second_text_out_of_the_first(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "x").write_bytes(before.encode())
    diff = unified_diff("x", before, after)
    subprocess.run(["git", "apply", "--whitespace=nowarn", "-p1"], cwd=tmp_path, input=diff.encode(), check=True)
    assert (tmp_path / "x").read_bytes() == after.encode()


def test_line_numbers_count_from_further_up() -> None:
    assert "@@ -8 +8 @@\n" in unified_diff("x", "a\n", "b\n", skipped=7)


def test_the_same_text_has_no_diff() -> None:
    assert content_diff("x", b"a", b"a", BOUNDS) == ""


@pytest.mark.parametrize(
    ("before", "after"), [(None, b""), (b"", None), (b"\0", b""), (b"\xff", b""), (b"x" * 5_001, b"")]
)
def test_what_cannot_be_compared_has_none(before: bytes | None, after: bytes | None) -> None:
    assert content_diff("x", before, after, BOUNDS) is None


def test_what_is_left_out_is_counted() -> None:
    diff = unified_diff("x", "", "".join(f"{number}\n" for number in range(20)), Bounds(lines=5))
    assert diff.splitlines()[-3:] == ["+0", "+1", "... 18 more lines"]


@given(st.text(max_size=400), st.text(max_size=400))
def test_a_diff_stays_within_its_bounds(before: str, after: str) -> None:
    diff = unified_diff("x", before, after, BOUNDS)
    lines = diff.split("\n")[:-1]
    assert len(diff) <= 200 + len("... 1000 more lines\n")
    assert all(len(line) <= 20 + len("...") for line in lines if not line.startswith("\\ No newline"))

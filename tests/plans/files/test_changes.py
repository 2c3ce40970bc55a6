"""Two attempts of a call are one: what it changed is told from before the first to after the last."""

from __future__ import annotations

from typing import Literal

import pytest

from plansurvive.plans.files.changes import FileChange, followed


def change(before: str, after: str, path: str = "a", **more: object) -> FileChange:
    kind: Literal["created", "changed", "deleted"] = "changed"
    if "" in (before, after):
        kind = "deleted" if after == "" else "created"
    return FileChange.model_validate({"path": path, "kind": kind, "before": before, "after": after, **more})


@pytest.mark.parametrize(
    ("first", "last", "both"),
    [
        (("", "1"), ("1", "1"), [("", "1")]),
        (("", "1"), ("1", "2"), [("", "2")]),
        (("", "1"), ("1", ""), []),
        (("0", "1"), ("1", "2"), [("0", "2")]),
        (("0", "1"), ("1", ""), [("0", "")]),
        (("0", ""), ("", "2"), [("0", "2")]),
        (("0", "1"), ("x", "2"), [("x", "2")]),  # somebody else was there between
        (("", "1"), ("", "1"), [("", "1")]),  # undone between
    ],
)
def test_a_path_that_both_changed(first: tuple[str, str], last: tuple[str, str], both: list[tuple[str, str]]) -> None:
    assert followed([change(*first)], [change(*last)]) == [change(*each) for each in both]


def test_paths_that_one_of_them_changed_are_left_as_they_are() -> None:
    first, last = change("", "1", "a"), change("", "1", "b")
    assert followed([first], [last]) == [first, last]


def test_what_was_there_before_keeps_its_mode_and_whose_it_may_be() -> None:
    first = change("0", "1", mode=0o600, shared=True, others=["x", "y"])
    last = change("1", "2", mode=0o644, others=["y", "z"])
    assert followed([first], [last]) == [change("0", "2", mode=0o600, shared=True, others=["x", "y", "z"])]

"""A pending call with the arguments that a person wants instead: what of it stays, and what is said of the change."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.client.decide.call_diff import call_diff
from plansurvive.client.decide.changed_call import edit_rows, is_same, with_args
from plansurvive.client.decide.shown import styles, with_change
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows

LARGE = LargeValue(sha256="1f" * 32, bytes=900_000, preview="once upon a time")


@pytest.fixture
def asked(tmp_path: Path) -> Card:
    (tmp_path / "b.txt").write_text("old\n")
    return Card(
        step_id="save", kind="approval", tool="write_file", args={"path": "a.txt", "content": "$read"},
        workspace=str(tmp_path), large={"read": LARGE}, always="every call of write_file",
    )  # fmt: skip


def test_a_large_value_that_is_still_referred_to_is_shown_with_its_hash_and_not_compared_as_a_text(
    asked: Card,
) -> None:
    changed = with_args(asked, {"path": "b.txt", "content": "$read"})
    assert changed.large == {"read": LARGE}
    diff = call_diff(changed)
    assert diff is not None
    assert (diff.kind, diff.lines) == ("unknown", ())
    assert LARGE.sha256 in "\n".join(call_rows(with_change(changed)))


def test_a_large_value_that_is_gone_from_the_call_is_not_shown_with_it(asked: Card) -> None:
    changed = with_args(asked.model_copy(update={"change": {"content": "+old"}}), {"path": "b.txt", "content": "new\n"})
    assert changed.change == {}, "the diff of the call that was asked about is not that of this one"
    assert (changed.large, changed.always) == ({}, "")
    diff = call_diff(changed)
    assert diff is not None
    assert diff.rows == ["@@ -1 +1 @@", "-old", "+new"]


def test_a_title_that_tells_the_arguments_before_is_not_shown_with_others(asked: Card) -> None:
    called = asked.model_copy(update={"description": "write_file a.txt"})
    assert with_args(called, {"path": "b.txt", "content": "$read"}).description == ""
    assert with_args(called, {"path": "a.txt", "content": "new"}).description == "write_file a.txt"
    written = asked.model_copy(update={"description": "Save the text"})
    assert with_args(written, {"path": "b.txt", "content": "$read"}).description == "Save the text"


def test_an_edit_is_told_as_a_diff_of_each_argument_in_which_nothing_can_pass_for_another_row(
    asked: Card,
) -> None:
    rows = edit_rows(asked, {"path": "b\u202e.txt", "content": "$read", "x\n! y": 1})
    assert rows == [
        "your edit    │ path:", "             │ -a.txt", "             │ +b\\u{202e}.txt",
        "             │ x ! y:", "             │ +1",
    ]  # fmt: skip
    assert styles(rows, asked) == ["", "red", "green", "", "green"]


@pytest.mark.parametrize("value", [True, 1.0, "1", 2])
def test_arguments_that_only_look_the_same_are_others(value: object) -> None:
    item = Card(step_id="s", kind="approval", tool="t", args={"a": {"b": [1]}, "c": 2})
    assert is_same(item, {"c": 2, "a": {"b": [1]}}), "their order means nothing"
    assert not is_same(item, {"a": {"b": [value]}, "c": 2})

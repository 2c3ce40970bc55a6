"""Undoing is decided per path, backwards, and never over what somebody else has changed since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plans.files.undo import FOLDER, CallChanges, FileChange, Refusal, Restore, decide_undo

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)


def call(number: int, step_id: str, *changes: tuple[str, str | None, str | None], **more: Any) -> CallChanges:
    """A call that took each path from one state to another."""
    found = [
        FileChange(path=path, kind="created" if before == "" else "deleted" if after == "" else "changed",
                   before=before, after=after)
        for path, before, after in changes
    ]  # fmt: skip
    time = NOW + timedelta(seconds=number)
    return CallChanges(
        key=f"k{number}", plan_id="p", step_id=step_id, workspace="/w", time=time, changes=found, **more
    )  # fmt: skip


def decide(
    calls: list[CallChanges], now: dict[str, str], step_id: str | None = None, lost: set[str] | None = None
) -> tuple[list[Restore], list[Refusal]]:
    return decide_undo(calls, step_id, lambda _, path: now.get(path, ""), lambda state: state not in (lost or set()))


def test_what_was_made_is_deleted_and_what_was_changed_or_deleted_is_restored() -> None:
    calls = [call(1, "a", ("new", "", "1"), ("old", "0", "2"), ("gone", "3", ""))]
    restored, refused = decide(calls, {"new": "1", "old": "2"})
    assert {(each.path, each.target) for each in restored} == {("new", ""), ("old", "0"), ("gone", "3")}
    assert refused == []


def test_a_chain_of_changes_goes_back_to_its_beginning() -> None:
    calls = [call(1, "a", ("f", "", "1")), call(2, "b", ("f", "1", "2")), call(3, "c", ("f", "2", "3"))]
    restored, _ = decide(calls, {"f": "3"})
    assert [(each.expected, each.target) for each in restored] == [("3", "")]


def test_the_last_step_alone_goes_back_to_what_it_found() -> None:
    calls = [call(1, "a", ("f", "", "1")), call(2, "b", ("f", None, "2"))]
    restored, _ = decide(calls, {"f": "2"}, "b")
    assert [(each.expected, each.target) for each in restored] == [("2", "1")]


def test_a_step_whose_file_a_later_step_changed_is_refused() -> None:
    calls = [call(1, "a", ("f", "", "1")), call(2, "b", ("f", "1", "2"))]
    restored, refused = decide(calls, {"f": "2"}, "a")
    assert (restored, [(each.code, "step 'b'" in each.reason) for each in refused]) == ([], [("CONFLICT", True)])


@pytest.mark.parametrize("now", ["9", "", FOLDER])
def test_what_was_changed_since_is_refused(now: str) -> None:
    restored, refused = decide([call(1, "a", ("f", "0", "1"))], {"f": now})
    assert (restored, [each.code for each in refused]) == ([], ["CONFLICT"])


def test_what_somebody_changed_between_two_steps_is_refused() -> None:
    calls = [call(1, "a", ("f", "0", "1")), call(2, "b", ("f", "5", "2"))]
    assert [each.step_id for each in decide(calls, {"f": "2"})[1]] == ["b"]


def test_a_content_that_is_not_kept_is_refused() -> None:
    assert [each.code for each in decide([call(1, "a", ("f", "0", "1"))], {"f": "1"}, lost={"0"})[1]] == ["NOT_KEPT"]
    assert [each.code for each in decide([call(1, "a", ("f", None, "1"))], {"f": "1"})[1]] == ["NOT_KEPT"]


def test_what_is_back_already_stays() -> None:
    restored, refused = decide([call(1, "a", ("f", "0", "1"))], {"f": "0"})
    assert ([each.done for each in restored], refused) == ([True], [])


def test_what_was_undone_counts_no_more() -> None:
    assert decide([call(1, "a", ("f", "0", "1"), undone=NOW)], {"f": "1"}) == ([], [])


def test_the_latest_change_goes_first_and_a_directory_after_what_is_in_it() -> None:
    calls = [call(1, "a", ("d", "", FOLDER)), call(2, "b", ("d/f", "", "1"), ("d/e", "", FOLDER))]
    restored, _ = decide(calls, {"d": FOLDER, "d/f": "1", "d/e": FOLDER})
    assert [each.path for each in restored] == ["d/f", "d/e", "d"]

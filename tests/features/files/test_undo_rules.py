"""Undoing is decided per path, backwards, and never over what somebody else has changed since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plansurvive.features.files.model import Refusal, Restore
from plansurvive.features.files.undo_rules import decide_undo
from plansurvive.plans.files.changes import FOLDER, CallChanges, FileChange

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


@pytest.mark.parametrize("name", ["a.undo", "a.undo.tell", "sub.undo/b.undo", "each[x.y].a.undo"])
def test_what_only_an_undo_wrote_stays_and_what_the_step_wrote_before_does_not(name: str) -> None:
    calls = [call(1, "a", ("f", "", "1")), call(2, name, ("f", "1", "2"), ("undo.log", "", "9"))]
    restored, refused = decide(calls, {"f": "2", "undo.log": "9"})
    assert ([(each.path, each.target) for each in restored], refused) == ([("f", "")], [])


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


def beside(began: int, number: int, step_id: str, *changes: tuple[str, str | None, str | None]) -> CallChanges:
    """A call that took its time."""
    return call(number, step_id, *changes).model_copy(update={"began": NOW + timedelta(seconds=began)})


def test_steps_side_by_side_that_wrote_one_file_are_undone_together() -> None:
    """Each saw what the others had left; the state before the first of them is what counts."""
    calls = [
        beside(0, 5, "a", ("f", "0", "2")),
        beside(1, 9, "b", ("f", "1", "3")),
        beside(2, 7, "c", ("f", "0", "2")),
    ]
    restored, refused = decide(calls, {"f": "3"})
    assert ([(each.expected, each.target) for each in restored], refused) == ([("3", "0")], [])


def test_whichever_of_them_wrote_last_left_the_file_as_it_is() -> None:
    """The states are read after the calls, so the last to end need not be the last to have looked."""
    calls = [beside(0, 5, "a", ("f", "", "1")), beside(1, 6, "b", ("f", "", "2"))]
    assert [each.target for each in decide(calls, {"f": "1"})[0]] == [""]
    assert [each.target for each in decide(calls, {"f": "2"})[0]] == [""]
    assert [each.code for each in decide(calls, {"f": "9"})[1]] == ["CONFLICT"]


def test_what_somebody_else_changed_between_two_groups_of_steps_is_refused() -> None:
    calls = [
        beside(0, 5, "a", ("f", "", "1")),
        beside(1, 6, "b", ("f", "", "2")),
        beside(7, 9, "c", ("f", "8", "3")),
        beside(8, 9, "d", ("f", "2", "3")),
    ]
    [refusal] = decide(calls, {"f": "3"})[1]
    assert (refusal.code, refusal.reason) == ("CONFLICT", "something else changed it before step 'c' did")
    mended = [*calls[:2], beside(7, 9, "c", ("f", "1", "3")), calls[3]]
    assert [each.target for each in decide(mended, {"f": "3"})[0]] == [""]


@pytest.mark.parametrize("step_id", ["a", "b"])
def test_one_of_several_steps_that_wrote_a_file_at_the_same_time_is_not_undone_alone(step_id: str) -> None:
    calls = [beside(0, 5, "a", ("f", "", "1")), beside(1, 6, "b", ("f", "", "2"))]
    [refusal] = decide(calls, {"f": "2"}, step_id)[1]
    assert refusal.reason.endswith("at the same time; undo the whole plan instead")


def test_a_directory_goes_after_what_another_step_put_into_it_and_returns_before() -> None:
    calls = [
        beside(1, 3, "b", ("d/x", "", "1"), ("old/x", "2", "")),
        beside(0, 9, "a", ("d", "", FOLDER), ("old", FOLDER, "")),
    ]
    restored, _ = decide(calls, {"d": FOLDER, "d/x": "1"})
    assert [each.path for each in restored] == ["old", "old/x", "d/x", "d"]

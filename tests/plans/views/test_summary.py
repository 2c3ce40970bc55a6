"""The end of a plan in numbers and as SUMMARY.md."""

from __future__ import annotations

from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.notice import Notice
from plansurvive.plans.views.summary import summary_markdown, summary_of
from plansurvive.plans.views.text import text
from tests.plans.building import NOW, begun, completed, later, step
from tests.plans.views.test_markdown import hostile


def test_the_summary_counts_and_names_what_went_wrong() -> None:
    schedule = hostile("it broke")
    schedule.end(later(3))
    summary = summary_of(schedule.run).to_json()
    assert (summary["status"], summary["counts"]) == ("partial", {"total": 2, "blocked": 1, "failed": 1})
    assert summary["duration"] == 3.0
    assert summary["failed"] == [{"stepId": "a", "code": "TOOL_FAILED", "error": "it broke"}]
    assert summary["blocked"] == [{"stepId": "b", "reason": "'a' failed"}]
    shown = summary_markdown(summary_of(schedule.run), text(schedule.run))
    for part in (
        "# it broke",
        "- Status: partial",
        "- Duration: 3.0 s",
        "## Failed",
        "- `it broke`",
        "  0: [✗] it broke",
    ):
        assert part in shown


def wrote_and_deleted(order: list[str]) -> Schedule:
    """`write` writes a file and `delete` deletes it; they are done in this order."""
    schedule = begun(step("write"), step("delete"), step("other"))
    schedule.run.steps["write"].wrote = ["a.txt", "b.txt"]
    schedule.run.steps["delete"].deleted = ["a.txt"]
    for second, name in enumerate(order):
        schedule.start(name, NOW)
        schedule.settle(name, completed(), later(second))
    return schedule


def test_a_file_that_a_later_step_deleted_is_not_left() -> None:
    assert summary_of(wrote_and_deleted(["write", "delete"]).run).files_written == ["b.txt"]
    assert summary_of(wrote_and_deleted(["delete", "write"]).run).files_written == ["a.txt", "b.txt"]


def test_a_file_written_by_a_step_that_is_not_done_is_left() -> None:
    assert summary_of(wrote_and_deleted(["delete"]).run).files_written == ["a.txt", "b.txt"]
    assert summary_of(wrote_and_deleted(["write"]).run).files_written == ["b.txt"]


def test_a_plan_that_may_not_start_a_step_says_what_it_waits_for_until_it_may() -> None:
    run = begun(step("a")).run
    assert "heldUp" not in summary_of(run).to_json()
    run.notices["locks"] = Notice(text="has its workspace to itself", since=NOW)
    assert summary_of(run).held_up == ""
    run.notices["locks"] = Notice(text="waits for its workspace", since=NOW, holds=True)
    assert summary_of(run).held_up == "waits for its workspace"
    run.ended = NOW
    assert summary_of(run).held_up == "", "it has ended"

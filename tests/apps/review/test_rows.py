"""What the screen shows of a view: rows that fit, marks with words, problems where they are."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from plansurvive.apps.review.rows import change_log, cut, detail, heading, news, rows
from plansurvive.client.feature import views_of_features
from plansurvive.plans.views.models import PlanView

STEP = {
    "tool": "read_file",
    "args": {"path": "a"},
    "description": "",
    "needs": [],
    "dependsOn": [],
    "requiresApproval": False,
}


def view(*steps: dict[str, Any], **more: Any) -> PlanView:
    found = [{**STEP, "status": "pending", **each} for each in steps]
    head = {"id": "p", "title": "", "status": "review", "version": 1, "pending": [], "problems": [], "changes": []}
    return PlanView.read({**head, "counts": {"total": len(steps)}, "steps": found, **more}, views_of_features())


def plain(found: PlanView, width: int = 80) -> list[str]:
    return [row.plain.rstrip() for row in rows(found, width)]


def full(found: PlanView, index: int, width: int = 80) -> str:
    """A step in full, as it stands on a screen of that width."""
    console = Console(file=StringIO(), width=width)
    with console.capture() as captured:
        console.print(detail(found, found.steps[index], {}))
    return captured.get()


def test_a_step_with_a_problem_is_marked_and_says_what_it_is() -> None:
    problem = {"code": "PLAN_CYCLE", "message": "goes round", "stepId": "b", "field": "dependsOn"}
    found = view({"id": "a"}, {"id": "b"}, problems=[problem])
    assert [row.endswith("✗ problem") for row in plain(found)] == [False, True]
    assert "✗ dependsOn: goes round" in full(found, 1)


@pytest.mark.parametrize(
    ("status", "mark", "word"),
    [
        ("completed", "✓", "completed"),
        ("failed", "✗", "failed"),
        ("skipped", "–", "skipped"),
        ("running", "▸", "running"),
    ],
)
def test_every_status_has_a_mark_and_a_word(status: str, mark: str, word: str) -> None:
    (row,) = plain(view({"id": "a", "status": status}))
    assert row.startswith(mark)
    assert row.endswith(word)


def test_a_failure_is_told_before_the_arguments() -> None:
    found = view({"id": "a", "status": "failed", "result": {"ok": False, "error": "no such\nfile"}})
    text = full(found, 0)
    assert text.index("no such") < text.index("path")


def test_a_long_text_stands_beside_what_it_is_and_not_below() -> None:
    found = view({"id": "a", "args": {"content": "word " * 30 + "\nend"}})
    shown = full(found, 0, width=40).splitlines()
    at = next(number for number, row in enumerate(shown) if row.startswith("content"))
    assert [row[:13].strip() for row in shown[at : at + 7]] == ["content", *[""] * 6]


@pytest.mark.parametrize("width", [30, 80, 200])
@pytest.mark.parametrize("text", ["x" * 500, "很" * 300, "é\u0301" * 300, "a\nb\tc\x1b[1m" * 50])
def test_no_row_is_wider_than_asked_whatever_the_texts(text: str, width: int) -> None:
    found = view(
        {"id": "i" * 128, "description": text, "tool": text[:200]}, {"id": "b", "needs": ["i" * 128]}, title=text
    )
    assert all(cell_len(row.plain) <= max(width, 75) for row in rows(found, width))
    assert all("\n" not in row.plain for row in rows(found, width))
    assert cell_len(heading(found, width).plain) <= max(width, 60)
    assert cell_len(cut(text.split("\n")[0], 10)) <= 10


def test_the_change_log_is_newest_first_and_escaped() -> None:
    first = {
        "version": 2,
        "by": "ann",
        "time": "2026-01-01T00:00:00Z",
        "reason": "so",
        "diff": ["~ a.args.path: x -> y"],
    }
    second = {**first, "version": 3, "by": "\x1b[2J", "reason": ""}
    text = change_log(view({"id": "a"}, changes=[first, second])).plain
    assert text.index("version 3") < text.index("version 2 by ann")
    assert "\x1b" not in text
    assert news(view({"id": "a"}, version=3, changes=[first]), 1) == "version 3 (ann: ~ a.args.path: x -> y)"


def test_the_task_list_of_a_steps_agent_stands_in_its_detail() -> None:
    tasks = [{"objective": f"Task\x1b[2J {status}", "status": status} for status in ("done", "current", "open")]
    shown = full(view({"id": "a", "status": "running", "tasks": tasks}), 0)
    assert "tasks        ✓ done    Task" in shown
    assert "▸ current Task" in shown
    assert "· open    Task" in shown
    assert "\x1b[2J" not in shown


def test_a_denied_step_says_so_and_who_denied_it_and_why() -> None:
    result = {"ok": False, "code": "DENIED", "error": "User denied approval"}
    decision = {"approved": False, "by": "ann", "comment": "not\x1b[2J now"}
    found = view({"id": "a", "status": "skipped", "result": result, "decision": decision}, status="partial")
    assert plain(found)[0].endswith("denied")
    assert "denied by ann: not\\u001b[2J now" in full(found, 0)
    counted = view({"id": "a", "status": "skipped"}, {"id": "b"}, counts={"total": 2, "completed": 1, "denied": 1})
    assert "1 of 2 steps done" in heading(counted, 100).plain


def test_a_pending_recovery_is_shown_in_words() -> None:
    choice = {"action": "insert", "steps": [{"id": "make", "tool": "write_file", "args": {"path": "x"}}]}
    item = {"stepId": "a", "kind": "recovery", "tool": "read_file", "args": {"recovery": choice, "failure": "gone"}}
    shown = full(view({"id": "a", "status": "ready", "awaiting": "approval"}, pending=[item]), 0)
    for part in ("recovery: y approves", "insert 1 step, then call it again", "1. tool", "write_file", "gone"):
        assert part in shown, part
    assert "{" not in shown


def test_a_step_that_races_on_a_file_says_so_before_the_plan_begins() -> None:
    steps = (
        {"id": "c", "tool": "write_file", "args": {"path": "f", "content": ""}},
        {"id": "d", "args": {"path": "f"}},
    )
    assert "steps 'c' and 'd' may run at the same time" in " ".join(full(view(*steps), 1, 200).split())
    assert "at the same time" not in full(view(*steps), 0, 200)
    assert "at the same time" not in full(view(*steps, status="running"), 1, 200)


def test_a_plan_that_rolls_back_says_so_and_names_what_each_row_undoes() -> None:
    undo = {"id": "pack.undo", "closes": "undo", "status": "ready", "awaiting": "approval"}
    closing = {"phase": "rollback", "ends": "partial", "cancelled": False, "undo": {"running": 1}}
    found = view({"id": "pack", "status": "completed"}, undo, status="running", closing=closing)
    assert "  rolling back  " in heading(found, 80).plain
    assert "pack.undo" in plain(found)[1]


def test_what_awaits_a_person_is_counted_whole_beside_a_long_title() -> None:
    asked = [{"stepId": name, "kind": "approval", "tool": "x", "version": 1, "digest": ""} for name in "ab"]
    found = view({"id": "a"}, {"id": "b"}, title="A long title of a plan that goes on", pending=asked, status="running")
    assert heading(found, 70).plain.endswith("  ? 2 to decide")
    assert heading(found, 120).plain.endswith("  ? 2 awaiting approval")


def test_a_step_that_never_starts_will_not_ask() -> None:
    never = {"id": "a", "status": "blocked", "never": True, "requiresApproval": True}
    assert plain(view(never))[0].endswith("permanently blocked")


def test_a_step_shows_how_its_child_plan_stands_and_how_to_decide_what_that_asks() -> None:
    asked = [{"planId": "p-a", "stepId": name, "path": name, "kind": "approval"} for name in "wxyz"]
    child = {"planId": "p-a", "status": "running", "counts": {"total": 5, "completed": 1}, "pending": asked}
    found = view({"id": "a", "tool": "plan", "status": "running", "child": child}, status="running")
    assert "running, 1 of 5 done, 4 awaiting a decision" in plain(found)[0]
    text = full(found, 0, 120)
    assert "plan show p-a   or: plan review p-a" in text
    assert "plan approve p a/w   or: plan deny p a/w --comment WHY" in text
    assert "a/z" not in text
    assert "1 more: plan pending p" in text


def test_a_step_says_what_the_calls_of_its_agent_await() -> None:
    asks = {"agent_id": "agent-p-a", "step_ids": ["call_1", "call_2"]}
    found = view({"id": "a", "tool": "agent", "status": "running", "agent_asks": asks}, status="running")
    assert "2 awaiting a decision" in plain(found)[0]
    assert "plan approve p a/call_2" in full(found, 0, 120)


def test_the_row_of_a_failed_item_says_why() -> None:
    failed = {"id": "a[x]", "tool": "t", "status": "failed", "item": "x", "result": {"ok": False, "error": "no header"}}
    inside = {"kind": "each", "total": 1, "counts": {"failed": 1}}
    found = view({"id": "a", "status": "running", "inside": inside, "instances": [failed]}, status="running")
    assert "no header" in plain(found)[1]
    assert "{}" not in plain(found)[1]


def test_what_holds_a_plan_up_is_whole_below_a_heading_without_room_for_it() -> None:
    text = "waits for its turn among the plans with the label customer=acme, at most 1 plan at a time"
    notices = {"quotas": {"text": text, "since": "2026-01-01T12:00:00Z", "holds": True}}
    found = view({"id": "a"}, title="A plan that waits", notices=notices, status="running")
    assert heading(found, 80).plain == f"A plan that waits  running  version 1  1 step\n{text}"
    assert heading(found, 200).plain.endswith(f"1 step  {text}")


def test_the_heading_of_a_refused_plan_says_why_though_no_step_is_at_fault() -> None:
    stopped = "its worker refused it: BAD_WORKSPACE: workspace: workspace '/gone' does not exist on the worker"
    found = view({"id": "a", "status": "blocked", "never": True}, status="failed", stopped=stopped)
    assert heading(found, 80).plain.splitlines() == ["p  failed  version 1  1 step", stopped]

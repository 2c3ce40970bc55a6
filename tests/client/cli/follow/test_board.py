"""The live board: what is shown of a plan, and how it fits the screen."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console

from plansurvive.client.cli.follow.board import board
from plansurvive.plans.notice import Notice
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.views.models import BriefStep, BriefView, TokensView
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.models.live import live_of
from plansurvive.plans.views.models.plan import ClosingView
from plansurvive.plans.views.steps.abridged import chosen

NOW = datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)
STARTED = "2026-01-01T12:00:00Z"


def step(name: str, status: str, **more: Any) -> BriefStep:
    given = {"id": name, "tool": "read_file", "description": f"Do {name}", "args": {}, "status": status, **more}
    return BriefStep.model_validate(given)


def view(*steps: BriefStep, title: str = "My plan") -> BriefView:
    counts: dict[str, int] = {"total": len(steps)}
    for each in steps:
        counts[each.status] = counts.get(each.status, 0) + 1
    pending = [Card(step_id=each.id, kind="approval", tool=each.tool) for each in steps if each.awaiting]
    return BriefView(
        id="p",
        title=title,
        status=PlanStatus.RUNNING,
        started_at=datetime.fromisoformat(STARTED),
        pending=pending,
        counts=counts,
        steps=list(steps),
    )


def drawn(shown: BriefView, height: int = 24, width: int = 80) -> list[str]:
    """The lines of the board on a screen of that size."""
    file = io.StringIO()
    console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None, markup=True)
    console.print(board(shown, NOW, height))
    return file.getvalue().splitlines()


def test_each_step_is_a_line_with_its_mark_and_its_time() -> None:
    lines = drawn(
        view(
            step("a", "completed", result={"ok": True, "duration": 3200}),
            step("b", "running", startedAt="2026-01-01T12:00:08Z"),
            step("c", "failed", result={"ok": False, "code": "NOT_FOUND", "error": "there is no x"}),
            step("d", "ready", awaiting="approval"),
            step("e", "blocked"),
        )
    )
    assert "My plan" in lines[0]
    assert lines[0].rstrip().endswith("running  10 s")
    assert lines[1].rstrip().endswith("1/5"), "what failed is not done"
    rows = {row.split()[1]: row for row in lines[2:7]}
    assert rows["a"].startswith("✓")
    assert rows["a"].rstrip().endswith("3.2 s")
    assert rows["b"].startswith("▸")
    assert rows["b"].rstrip().endswith("2.0 s")
    assert "there is no x" in rows["c"]
    assert rows["d"].startswith("?")
    assert "awaiting approval" in rows["d"]
    assert lines[7].rstrip() == "1 running · 1 completed · 1 failed · 1 blocked · 1 awaiting approval"


def test_a_plan_that_rolls_back_says_so_until_it_has_ended() -> None:
    shown = view(step("a", "running"))
    shown = shown.model_copy(update={"closing": ClosingView(phase="rollback", ends="failed")})
    assert drawn(shown)[0].rstrip().endswith("rolling back  10 s")
    ended = {"ended_at": NOW, "status": PlanStatus.FAILED}
    assert drawn(shown.model_copy(update=ended))[0].rstrip().endswith("failed  10 s")


def test_the_row_of_a_child_plan_says_how_it_stands_and_that_it_asks() -> None:
    child = {"planId": "p-a", "status": "running", "counts": {"total": 2}, "more": 1}
    lines = drawn(view(step("a", "running", child=child)))
    assert "running, 0 of 2 done, 1 awaiting a decision" in lines[2]


def test_a_running_agent_that_awaits_a_decision_is_counted_once() -> None:
    shown = view(step("a", "running", startedAt=STARTED), step("b", "running", awaiting="approval"))
    tokens = TokensView(calls=1, total_tokens=1_500)
    assert drawn(shown.model_copy(update={"tokens": tokens}))[-1].rstrip() == (
        "1 running · 1 awaiting approval · 1,500 tokens in 1 LLM request"
    )


def test_a_big_plan_fits_the_screen_and_shows_what_moves_first() -> None:
    steps = [step(f"s{number}", "blocked") for number in range(500)]
    steps[100] = step("asks", "ready", awaiting="approval")
    steps[250] = step("runs", "running", startedAt=STARTED)
    steps[499] = step("broke", "failed", result={"ok": False, "error": "no"})
    lines = drawn(view(*steps), height=20)
    assert len(lines) <= 20
    text = "\n".join(lines)
    assert text.index("asks") < text.index("runs") < text.index("broke")
    assert "… and" in text


def test_what_was_done_last_is_shown_before_what_was_done_first() -> None:
    steps = [step(f"s{n}", "completed", endedAt=f"2026-01-01T12:00:{n:02}Z") for n in range(50)]
    assert chosen(steps, 11) == list(range(40, 50))


def test_long_texts_are_cut_and_no_line_is_wider_than_the_screen() -> None:
    lines = drawn(view(step("x" * 100, "running", startedAt=STARTED, description="very long " * 50)), width=60)
    assert max(map(len, lines)) <= 60
    assert "…" in lines[2]


def test_a_wide_screen_has_room_for_longer_names_of_steps() -> None:
    name = "announce.undo.withdraw-all"
    assert name not in drawn(view(step(name, "running", description="")))[2]
    console = Console(file=(file := io.StringIO()), width=120, force_terminal=True, color_system=None)
    console.print(board(view(step(name, "running", description="")), NOW, 24, width=120))
    assert name in file.getvalue()


def test_texts_of_a_plan_are_neither_markup_nor_control_characters() -> None:
    hostile = "[red]x[/red] \x1b[2J \u202e"
    text = "\n".join(drawn(view(step("a", "running", startedAt=STARTED, description=hostile), title=hostile)))
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


TASKS = [
    {"objective": "Find it", "status": "done"},
    {"objective": "Mend it", "status": "current"},
    {"objective": "Try it", "status": "open"},
]


def test_the_task_list_of_an_agent_stands_below_its_step_while_it_works() -> None:
    working = step("a", "running", startedAt=STARTED, tasks=TASKS)
    lines = drawn(view(working, step("b", "completed", tasks=TASKS)))
    at = next(index for index, line in enumerate(lines) if "Do a" in line)
    assert "1/3 tasks  10 s" in lines[at]
    assert [line.split(None, 1) for line in map(str.strip, lines[at + 1 : at + 4])] == [
        ["✓", "Find it"],
        ["▸", "Mend it"],
        ["·", "Try it"],
    ]
    assert sum("Find it" in line for line in lines) == 1


def test_where_there_is_no_room_for_a_task_list_the_row_says_how_far_it_is() -> None:
    working = step("a", "running", startedAt=STARTED, tasks=TASKS)
    lines = drawn(view(working, *(step(f"s{number}", "ready") for number in range(30))), height=12)
    assert len(lines) <= 12
    assert any("1/3 tasks" in line for line in lines)
    assert not any("Mend it" in line for line in lines)


def test_a_running_step_shows_its_percent_its_line_and_its_attempt() -> None:
    half = {"errors": 1, "of": 3, "progress": 42, "line": "42 of 100 files"}
    [row] = [row for row in drawn(view(step("a", "running", started_at=STARTED, live=live_of(half)))) if " a " in row]
    assert "42 of 100 files" in row
    assert row.rstrip().endswith("42%  attempt 2 of 3  10 s")


def test_a_step_that_waits_for_its_next_attempt_counts_down_and_says_why() -> None:
    failed = {"number": 1, "began": STARTED, "code": "BUSY", "error": "it is busy", "delay": 1.0}
    live = live_of({"errors": 1, "of": 3, "attempts": [failed]}, NOW + timedelta(seconds=1))
    [row] = [row for row in drawn(view(step("a", "running", started_at=STARTED, live=live))) if " a " in row]
    assert "it is busy" in row
    assert row.rstrip().endswith("attempt 2 of 3 in 1 s")


def test_a_sleep_shows_how_much_of_it_has_passed() -> None:
    until = datetime.fromisoformat(STARTED) + timedelta(seconds=40)
    [row] = [row for row in drawn(view(step("a", "running", started_at=STARTED, until=until))) if " a " in row]
    assert row.rstrip().endswith("25%  10 s")


def test_a_loop_that_rests_says_when_its_next_round_begins_and_no_percent() -> None:
    until = NOW + timedelta(seconds=90)
    inside = {"kind": "repeat", "total": 50, "began": 3}
    [row] = [
        row
        for row in drawn(view(step("a", "running", started_at=STARTED, until=until, inside=inside)))
        if "round 3 of 50" in row
    ]
    assert row.rstrip().endswith("next round in 90 s  10 s")
    assert "%" not in row


def test_a_text_is_cut_where_its_own_row_ends_and_not_where_that_of_another_row_does() -> None:
    failed = {"ok": False, "code": "A_CODE_OF_SOME_LENGTH_THAT_IS_LONG", "error": "no " * 40}
    rows = drawn(
        view(step("a", "completed", description="x" * 60, result={"ok": True}), step("b", "failed", result=failed))
    )
    assert "x" * 60 in rows[2]
    assert rows[3].rstrip().endswith("… A_CODE_OF_SOME_LENGTH_THAT_IS_LONG")
    assert max(map(len, rows)) <= 80


def test_what_holds_a_plan_up_and_counts_are_whole_in_as_many_rows_as_they_need() -> None:
    awaited = [step(f"s{n}", "ready", awaiting=each) for n, each in enumerate(("approval", "event", "recovery"))]
    shown = view(step("a", "running"), step("b", "completed"), step("c", "failed"), *awaited)
    text = "waits for its turn among the plans with the label customer=acme, at most 1 plan at a time"
    shown = shown.model_copy(update={"notices": {"quotas": Notice(text=text, since=NOW, holds=True)}})
    rows = drawn(shown, height=12)
    assert len(rows) < 12
    assert " ".join(" ".join(rows[1:3]).split()) == f"It {text}"
    assert [row.rstrip() for row in rows[-2:]] == [
        "1 running · 1 completed · 1 failed · 1 awaiting recovery · 1 awaiting event",
        "3 awaiting approval",
    ]


def test_the_row_of_an_agent_says_that_its_calls_await_decisions() -> None:
    asks = {"agent_id": "agent-p-a", "step_ids": ["call_1", "call_2"]}
    [row] = [row for row in drawn(view(step("a", "running", started_at=STARTED, agent_asks=asks))) if "Do a" in row]
    assert "2 awaiting a decision · Do a" in row


def test_rows_of_a_rollback_that_are_left_out_are_counted_apart_from_the_steps() -> None:
    steps = [step(f"s{n}", "completed", endedAt=STARTED) for n in range(4)]
    undoes = [step(f"s{n}.undo", "completed", closes="undo", endedAt=STARTED) for n in range(3)]
    rows = drawn(view(*steps, *undoes, step("x", "ready", awaiting="approval")), height=8)
    assert "… and 3 completed, 3 completed in the rollback" in "\n".join(rows)

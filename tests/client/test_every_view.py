"""Every view of a plan and of its steps, in every state: each can be rendered, and none contradicts another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from plansurvive.apps.mcp.decisions.asks import ask_of
from plansurvive.apps.review import rows as review
from plansurvive.apps.web.decisions.cards import Shown
from plansurvive.apps.web.plans.rows import listed
from plansurvive.client.cli.follow.board import board
from plansurvive.client.cli.follow.lines import Lines
from plansurvive.client.cli.follow.progress import Progress
from plansurvive.client.cli.terminal import asking
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.child_state import ChildPlan, ChildReport
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import ENDED, PlanStatus, Run, Status, run_of, text_of
from plansurvive.plans.views import details, markdown
from plansurvive.plans.views.ended import ended
from plansurvive.plans.views.models import BriefView, CallView, InsidePage, PlanView
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.progress.events import EventView
from plansurvive.plans.views.queries import BRIEF, QUERIES, brief_since
from plansurvive.plans.views.steps.call_text import call_rows
from plansurvive.plans.views.summary import Summary
from tests.plans.building import NOW, TOOLS
from tests.plans.flow.player import Failure, Player, note, plan

ASKED = {"requiresApproval": True}
WITH_UNDO = {"undo": {"tool": "delete_file", "args": {"path": "made"}}}
STEPS = [
    note("made", "x") | WITH_UNDO,
    note("built", 1, "made") | {"undo": {"steps": [note("a"), note("b", None, "a") | ASKED]}},
    {"id": "work", "dependsOn": ["made"], "steps": [note("a", 1) | ASKED, note("b", "$a")],
     "catch": [{"steps": [note("c")]}], "finally": [note("d")]},
    note("each", "{{item}}") | ASKED | {"forEach": {"items": ["x", "y"], "tolerate": 1}},
    {"id": "blocks", "forEach": {"items": [1, 2]}, "steps": [note("a", "$item") | ASKED, note("b", "$a")]},
    note("poll", 1) | {"repeat": {"until": "`true`", "limit": 2}},
    {"id": "either", "switch": [{"when": "`true`", "steps": [note("a") | ASKED]}, {"steps": [note("b")]}]},
    note("whole", 1) | ASKED,
    note("branch", 1) | ASKED | {"worktree": True},
    note("last", "$whole", "built"),
]  # fmt: skip
AWAITED = {Status.READY: ("approval", "answer", "event", "recovery"), Status.RUNNING: ("approval",)}
"""What a step of a status may await; a running agent awaits the approval of a larger budget."""
CHILD = ChildPlan(
    kind="inline",
    plan_id="p.whole",
    report=ChildReport(status="running", counts={"total": 2, "ready": 1, "running": 1}),
)


def begun() -> Run:
    fields = {"rollback": True, "finally_": [note("tidy") | ASKED], "labels": {"customer": "acme"}, "express": True}
    return plan(*STEPS, **fields)


def walks(number: int) -> Iterator[Player]:
    """States of one plan from its start to its end; what fails and what is denied is chosen by the number."""
    chance = random.Random(number)

    def tool(name: str, args: dict[str, Any]) -> Any:
        if chance.random() < 0.15 + 0.1 * (name == "last"):
            raise Failure("BROKEN")
        return args.get("text")

    player = Player(begun(), tool)
    yield player
    for _ in range(2_000):
        before = (player.run.seq, len(player.called))
        player.play(1)
        yield player
        if player.run.ended:
            return
        waiting = list(player.schedule.awaiting)
        if before == (player.run.seq, len(player.called)):
            player.decide(chance.choice(waiting), chance.random() < 0.8)
    pytest.fail("the plan does not end")


def looked_at(run: Run, name: str = "") -> None:
    """Render every view. `name`: the step that is of interest; its call is shown besides those that are awaited."""
    for name, query in QUERIES.items():
        if name not in ("call", "inside"):
            query(run, [])
    for asked in ({"detailed": True}, {"limit": 1, "detailed": True}, {"limit": 2}):
        QUERIES["text"](run, [asked])
    for step_id in {name or run.plan.steps[0].id, *(each for each, state in run.steps.items() if state.awaiting)}:
        call = QUERIES["call"](run, [{"stepId": step_id}])
        if call:
            call_rows(CallView.read(call))
    whole = PlanView.read(QUERIES["plan"](run, []))
    brief = BriefView.read(QUERIES["plan"](run, [BRIEF]))
    BriefView.read(QUERIES["plan"](run, [brief_since(max(0, run.seq - 1), run.plan.version)]))
    for step in whole.steps:
        if step.inside is not None:
            InsidePage.read(QUERIES["inside"](run, [{"stepId": step.id}]))
    console = Console(width=200, file=StringIO(), record=True)
    console.print(board(brief, NOW, 40))
    assert "-1 " not in console.export_text()
    for short in brief.steps:
        assert listed(short).row.mark, listed(short).remark
    review.heading(whole, 80), review.rows(whole, 80), review.change_log(whole), review.news(whole, 0)
    for step in whole.steps:
        review.detail(whole, step, TOOLS)
    for item in brief.pending:
        waiting = Pending(**item.model_dump(), plan_id="p")
        ask_of(waiting), asking.question("p", item), asking.ways("p", item)
        shown = Shown(waiting)
        assert waiting.key
        assert waiting.heading
        _ = (shown.rows, shown.covered, shown.is_long, item.places, item.warnings, item.why, item.late)
    summary = Summary.read(QUERIES["summary"](run, []))
    next_actions(summary)
    markdown.details(run, Schedule(run))
    lines = Lines("p", brief)
    for event in map(EventView.read, QUERIES["events"](run, [{"since": max(0, run.seq - 5)}])):
        lines.of(event)
    if run.status in ENDED:
        ended(run)


def agrees(run: Run) -> None:
    """The counts of a plan are the same wherever they are shown."""
    brief = BriefView.read(QUERIES["plan"](run, [BRIEF]))
    own = [step for step in brief.steps if not step.closes]
    numbers = details.in_words(run)
    assert brief.counts["total"] == len(own) == len(run.plan.steps)
    assert sum(count for name, count in brief.counts.items() if name != "total") == len(own)
    awaiting = sum(1 for step in brief.steps if step.awaiting)
    closing = sum(1 for step in brief.steps if step.awaiting and step.closes)
    assert sum(numbers.values()) == len(own) + closing
    assert sum(count for name, count in numbers.items() if name.startswith("awaiting")) == awaiting
    assert all(count > 0 for count in numbers.values())


@pytest.mark.parametrize("number", range(3))
def test_every_view_shows_every_state_that_a_plan_passes_through(number: int) -> None:
    last = 0
    progress: Progress | None = None
    for player in walks(number):
        run = player.run
        if run.seq == last:
            continue
        looked_at(run)
        agrees(run)
        view = BriefView.read(QUERIES["plan"](run, [BRIEF]))
        if progress is not None and [step.id for step in view.steps] == [step.id for step in progress.view.steps]:
            # What follows a plan by its events counts as the plan itself does.
            progress.apply(map(EventView.read, QUERIES["events"](run, [{"since": last, "limit": 1_000}])))
            known = {name: count for name, count in progress.view.counts.items() if count}
            assert known == view.counts
        progress, last = Progress(view), run.seq
    assert run.status in ENDED
    assert any(state.closes for state in run.steps.values())


def snapshots() -> Iterator[Run]:
    """A plan half way, one that rolls back and awaits an undo's approval, and one in its `finally`."""
    seen = set[str]()
    for player in (player for number in range(4) for player in walks(number)):
        run = player.run
        phase = run.closing.phase if run.closing else ""
        wanted = [state for state in run.steps.values() if state.awaiting and bool(state.closes) == bool(phase)]
        if wanted and run.opened and phase not in seen:
            seen.add(phase)
            yield run_of(text_of(run))


@pytest.mark.parametrize("status", list(PlanStatus))
def test_every_view_shows_every_status_of_a_plan(status: PlanStatus) -> None:
    for run in snapshots():
        run.status = status
        looked_at(run)


@pytest.mark.slow
def test_every_view_shows_every_state_of_every_step() -> None:
    found = list(snapshots())
    assert any(run.closing and run.closing.phase == "rollback" for run in found)
    assert any(run.closing and run.closing.phase == "finally" for run in found)
    for run in found:
        nodes = run.outline.nodes.values()  # one step of each kind
        for name in {(node.kind, node.parent is None, run.steps[node.id].closes): node.id for node in nodes}.values():
            state = run.steps[name]
            for status in Status:
                for awaiting in (None, *AWAITED.get(status, ())):
                    changed = state.model_copy(update={"status": status, "awaiting": awaiting, "child": CHILD})
                    run.steps[name] = changed
                    looked_at(run, name)
                    agrees(run)
            run.steps[name] = state


def test_the_logs_of_a_plans_finally_can_be_asked_for_before_it_has_written_any() -> None:
    [run] = [run for run in snapshots() if run.closing and run.closing.phase == "finally"]
    steps = QUERIES["logs"](run, [{"stepId": "finally"}])["steps"]
    assert steps[0]["stepId"] == "finally"

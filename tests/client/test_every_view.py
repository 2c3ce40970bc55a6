"""Every view of a plan and of its steps, in every state: each can be rendered, and none contradicts another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from plansurvive.apps.mcp.decisions.asks import ask_of
from plansurvive.apps.review import rows as review
from plansurvive.apps.web.decisions.cards import Shown
from plansurvive.apps.web.plans.rows import listed
from plansurvive.client.cli.follow.board import board
from plansurvive.client.cli.follow.follow import show_summary
from plansurvive.client.cli.follow.lines import Lines
from plansurvive.client.cli.follow.progress import Progress
from plansurvive.client.cli.terminal import asking
from plansurvive.client.cli.terminal.console import SafeConsole
from plansurvive.client.feature import read_run, rules_of_features, views_of_features
from plansurvive.client.verbs.pending import Pending
from plansurvive.features.coding_agents.model import KINDS, CodingSession, permission_specs, turn_spec
from plansurvive.features.policy.model import Asked, Consents, Decided, Known, Term, Terms
from plansurvive.features.quotas import rules as quotas
from plansurvive.features.quotas.model import QuotaGranted
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.child_state import AtWork, ChildPlan, ChildReport
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.model import Plan
from plansurvive.plans.run import ENDED, Options, PlanStatus, Run, Status, text_of
from plansurvive.plans.views import details, markdown
from plansurvive.plans.views.ended import ended
from plansurvive.plans.views.models import BriefView, CallView, InsidePage, PlanView
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.progress.events import EventView
from plansurvive.plans.views.queries import BRIEF, QUERIES, brief_since
from plansurvive.plans.views.steps.call_text import call_rows
from plansurvive.plans.views.summary import Summary
from tests.nightly import sampled
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
    note("terms", 1) | {"approval": {"by": ["ann", "bob"], "count": 2, "expires": 3600}},
    note("last", "$whole", "built"),
]  # fmt: skip
AWAITED = {Status.READY: ("approval", "answer", "event", "recovery"), Status.RUNNING: ("approval",)}
"""What a step of a status may await; a running agent awaits the approval of a larger budget."""
CHILD = ChildPlan(
    kind="inline",
    plan_id="p.whole",
    report=ChildReport(status="running", counts={"total": 2, "ready": 1, "running": 1}),
)

VIEWERS = [Viewer("", is_proven=False), Viewer("ann"), Viewer("bob@x"), Viewer("eve")]


def begun() -> Run:
    fields = {"rollback": True, "finally_": [note("tidy") | ASKED], "labels": {"customer": "acme"}, "express": True}
    run = plan(*STEPS, **fields)
    run.views = views_of_features()
    return run


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
        for viewer in VIEWERS:
            _ = (item.barred(viewer), [(way.label, way.text) for way in item.ways(viewer)])
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
    assert brief.resting == {name: count for name, count in numbers.items() if not name.startswith("awaiting")}


@pytest.mark.parametrize("number", sampled(range(6), 1, in_ci=1))
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
            yield read_run(text_of(run))


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


def consents(run: Run, step_id: str) -> Iterator[tuple[Asked, str]]:
    """How far the approvals of a call may be that two people must approve, and what every view has to say of it."""
    people = {"ann": Known(key="a"), "bob": Known(key="b", logins=["bob@x"]), "cara": Known(key="c")}
    two = Term(rule="two", by=["ann", "bob"], count=2, expires=3600, override=["cara"])
    terms = Terms(rules=[two], people=people)
    votes = [
        Decided(by=name, signed=name, key=name[0], time=NOW, digest=run.steps[step_id].digest)
        for name in ("ann", "bob", "cara")
    ]
    yield Asked(terms=terms), "rule 'two': 0 of 2; cara may override it; ann and bob must approve"
    yield Asked(terms=terms, decided=votes[:1]), "rule 'two': 1 of 2, by ann at 10:30; cara may override it; bob must"
    yield Asked(terms=terms, decided=votes[:2]), "rule 'two': 2 of 2"
    alone = votes[2].model_copy(update={"override": True})
    yield Asked(terms=terms, decided=[alone]), "rule 'two': overridden, by cara"
    left = terms.model_copy(update={"rules": [two.model_copy(update={"not_author": True})]})
    yield Asked(terms=left, decided=votes[:1]), "more as it is not proven who started or edited it"
    anybody = Term(rule="four-eyes", count=2)
    more = terms.model_copy(update={"rules": [two, anybody]})
    yield Asked(terms=more, decided=votes[2:]), "rule 'four-eyes': 1 of 2, by cara"


def decided(run: Run, name: str) -> Iterator[Run]:
    """The run after each decision about a step, as each verb makes it; one that is refused leaves it as it is."""
    for more in ({"approved": True}, {"approved": False}, {"approved": True, "override": True, "comment": "now"}):
        after = read_run(text_of(run))
        message = Decide.model_validate({"stepId": name, "by": "ann", **more})
        try:
            approvals.decide(after, message, NOW, "update", rules=rules_of_features())
        except PlanError:
            assert text_of(after) == text_of(run)
        yield after


def test_every_view_says_how_far_the_approvals_of_certain_people_are() -> None:
    for run in snapshots():
        names = [name for name, state in run.steps.items() if state.awaiting == "approval"]
        for name in names[:1]:
            for asked, says in consents(run, name):
                run.keep(Consents(steps={name: asked}))
                [card] = [
                    each for each in BriefView.read(QUERIES["plan"](run, [BRIEF])).pending if each.step_id == name
                ]
                item = Pending(**card.model_dump(), plan_id="p")
                views = {
                    "text": QUERIES["text"](run, [{"detailed": True}]),
                    "markdown": markdown.details(run, Schedule(run)),
                    "terminal": asking.question("p", card), "mcp": ask_of(item), "page": Shown(item).card.why,
                }  # fmt: skip
                lacking = {view: found for view, found in views.items() if says not in " ".join(str(found).split())}
                assert not lacking
            looked_at(run, name)
            for after in decided(run, name):
                looked_at(after)


def agent_run() -> Run:
    """A coding agent's own run: a turn, a permission of each kind, and a terminal."""
    shown = {"input": {"command": "make"}, "content": ["--- a\n+++ b\n-x\n+y"], "paths": ["a.txt"]}
    permissions = [
        {"id": f"p{number}", "tool": f"coding_agent.{kind}", "args": {"agent": "a", "title": f"{kind} it", **shown}}
        for number, kind in enumerate(KINDS, 1)
    ]
    turn = {"id": "call_1", "tool": "coding_agent", "args": {"agent": "a", "prompt": "Fix it"}}
    terminal = {"id": "p20", "tool": "run_command", "args": {"command": "make test"}}
    specs = {"coding_agent": turn_spec(False), **permission_specs(False), "run_command": TOOLS["run_command"]}
    steps = [turn, *permissions, terminal]
    own = Plan.model_validate({"id": "agent-p-code", "title": "Fix it", "maxParallel": 20, "steps": steps})
    run = Run.of(own, Options(), Facts(tools=specs), {})
    run.literal, run.views = True, views_of_features()
    run.keep(CodingSession(agent="a", session="s1", tasks=["one", "two"], done=1))
    return run


def test_every_view_shows_what_a_coding_agent_asks_permission_for() -> None:
    run = agent_run()
    player = Player(run)
    player.play()
    asked = [name for name, state in run.steps.items() if state.awaiting]
    assert len(asked) == len(KINDS) + 1
    looked_at(run)
    for name in (asked[0], asked[-1]):
        for after in decided(run, name):
            looked_at(after)
    for number, name in enumerate(asked):
        player.decide(name, approved=number % 2 == 0)
    looked_at(player.play(5).run)
    looked_at(player.play().run)


def test_every_view_of_a_plan_shows_what_its_coding_agent_asks_in_every_state() -> None:
    step = {"id": "code", "tool": "coding_agent", "args": {"agent": "a", "prompt": "Fix it"}}
    own = Plan.model_validate({"id": "p", "steps": [step, note("after", "$code")]})
    run = Run.of(own, Options(), Facts(tools=TOOLS | {"coding_agent": turn_spec(True)}), {})
    run.views = views_of_features()
    schedule = Schedule(run)
    schedule.begin(NOW)
    state = run.steps["code"]
    state.calls = 1
    for status in Status:
        for asks in ([], ["p1"], ["p1", "p2"]):
            work = AtWork(tasks=["one", "two"], done=1, asks=asks)
            run.steps["code"] = state.model_copy(update={"status": status})
            run.steps["code"].keep(work)
            looked_at(run, "code")
            if status is Status.RUNNING and asks:
                for text in (QUERIES["text"](run, [{"detailed": True}]), markdown.details(run, Schedule(run))):
                    assert "p1" in text, text


def test_every_view_says_that_a_plan_waits_for_its_turn_among_those_with_its_label() -> None:
    run = begun()
    schedule = Schedule(run)
    schedule.begin(NOW)
    quotas.ask(run, "customer=acme", 1, "t1", NOW)
    waits = "waits for its turn among the plans with the label customer=acme, at most 1 plan at a time"
    for status in PlanStatus:
        run.status = status
        looked_at(run)
    run.status = PlanStatus.RUNNING
    said_everywhere(run, waits)
    assert quotas.granted(run, QuotaGranted(token="t1"), NOW + timedelta(seconds=5))
    looked_at(run)


def said_everywhere(run: Run, text: str) -> None:
    """Assert that each view of the plan as a whole has the text."""
    console = Console(width=200, file=StringIO(), record=True)
    console.print(board(BriefView.read(QUERIES["plan"](run, [BRIEF])), NOW, 40))
    whole = PlanView.read(QUERIES["plan"](run, []))
    printed = SafeConsole(width=200, file=StringIO(), record=True)
    show_summary(Summary.read(QUERIES["summary"](run, [])), printed)
    views = {
        "summary": printed.export_text(),
        "text": QUERIES["text"](run, [{"detailed": True}]),
        "markdown": str(markdown.details(run, Schedule(run))),
        "board": console.export_text(),
        "review": str(review.heading(whole, 200)),
    }
    missing = {name: view for name, view in views.items() if text not in " ".join(view.split())}
    assert not missing


@pytest.mark.parametrize(("status", "mark"), [("running", "▸"), ("review", "?"), ("paused", "·")])
def test_the_summary_of_a_plan_that_has_not_ended_is_not_marked_as_a_failure(status: str, mark: str) -> None:
    run = begun()
    Schedule(run).begin(NOW)
    run.status = PlanStatus(status)
    printed = SafeConsole(width=200, file=StringIO(), record=True)
    show_summary(Summary.read(QUERIES["summary"](run, [])), printed)
    assert printed.export_text().startswith(f"{mark} {status} ")

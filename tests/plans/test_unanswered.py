"""Steps about which no decision came in time: skipped as denied ones are, and counted, named and reported apart."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.cli.follow.follow import exit_code
from plansurvive.features.children.results import result_of
from plansurvive.features.notify.rules import how_it_ended
from plansurvive.plans.child_state import ChildPlan, ChildReport
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.next_action import after_timeout
from plansurvive.plans.execution.resume import resumed
from plansurvive.plans.llm.prompt_parts import ToolOutcome, outcomes_text
from plansurvive.plans.model import Step
from plansurvive.plans.run import NOBODY_ANSWERED, PlanStatus, Result, Status, StepState
from plansurvive.plans.views.next_actions import next_actions
from plansurvive.plans.views.steps.row import row
from plansurvive.plans.views.summary import Summary, summary_markdown, summary_of
from plansurvive.plans.views.text import text as in_text
from tests.plans.building import NOW
from tests.plans.flow.player import Player, broken, code_of, note, plan

ASKS: dict[str, Any] = {"requiresApproval": True, "approval": {"timeout": 5}}
WHY = "no decision within 5 s"


def asks(name: str, *needs: str) -> dict[str, Any]:
    return note(name, None, *needs) | ASKS


LOOP: dict[str, Any] = {"id": "loop", "forEach": {"items": [1, 2]}} | {
    name: value for name, value in asks("loop").items() if name not in ("id", "dependsOn")
}


def played(*steps: dict[str, Any], denied: tuple[str, ...] = (), late: tuple[str, ...] = ()) -> Player:
    """A plan of which a person denied some steps, and about others no decision came; `bad` fails."""
    found = Player(plan(*steps), broken("bad")).play()
    for name in denied:
        found.decide(name, False)
    for name in late:
        decision = after_timeout(found.schedule, name)
        assert isinstance(decision, Decide)
        approvals.decide(found.run, decision, NOW, "timeout")
        found.schedule.answered(name)
    return found.play() if denied or late else found


def test_it_is_counted_named_and_shown_apart_from_denied_steps() -> None:
    found = played(asks("a"), asks("b"), note("c"), note("d", None, "a"), denied=("b",), late=("a",))
    assert (found.statuses("a", "b", "d"), code_of(found, "a")) == (["skipped", "skipped", "blocked"], NOBODY_ANSWERED)
    summary = summary_of(found.run)
    assert summary.counts == {"total": 4, "completed": 1, "blocked": 1, "denied": 1, "unanswered": 1}
    assert [(each.step_id, each.reason) for each in summary.unanswered] == [("a", WHY)]
    assert ([each.step_id for each in summary.denied], summary.skipped) == (["b"], [])
    assert row(found.run.steps["a"])[:2] == ("unanswered", "unanswered")
    assert row(found.run.steps["a"]).reason == WHY
    assert f"## Unanswered\n\n- `a`: {WHY}" in summary_markdown(summary)
    assert WHY in in_text(found.run)
    assert any("asks again about what was denied or not answered" in what for _, what in next_actions(summary))
    assert "not answered in time: a" in how_it_ended(found.run)


@pytest.mark.parametrize(
    ("steps", "denied", "late", "code"),
    [
        ([asks("a")], (), ("a",), 5),
        ([asks("a"), note("b", None, "a"), note("c"), note("d") | {"when": "`false`"}], (), ("a",), 5),
        ([{"id": "block", "steps": [asks("a")]}, note("c", None, "block")], (), ("block.a",), 5),
        ([asks("a"), asks("b")], ("b",), ("a",), 1),
        ([{"id": "block", "steps": [asks("a"), asks("b")]}], ("block.b",), ("block.a",), 1),
        ([asks("a"), note("bad")], (), ("a",), 1),
        ([asks("a")], ("a",), (), 1),
        ([note("c")], (), (), 0),
        ([LOOP], (), ("loop[0]", "loop[1]"), 5),
        ([LOOP | {"forEach": {"items": [1, 2], "tolerate": 2}}], (), ("loop[0]", "loop[1]"), 5),
        ([{"id": "block", "steps": [LOOP]}, note("c")], (), ("block.loop[0]", "block.loop[1]"), 5),
        ([LOOP], ("loop[1]",), ("loop[0]",), 1),
        ([LOOP, note("bad")], (), ("loop[0]", "loop[1]"), 1),
        ([asks("a"), {"id": "b", "steps": [note("bad")], "catch": [{"steps": [note("d")]}]}], (), ("a",), 5),
    ],
)
def test_the_exit_code_is_5_if_that_alone_kept_the_plan_from_completing(
    steps: list[dict[str, Any]], denied: tuple[str, ...], late: tuple[str, ...], code: int
) -> None:
    found = played(*steps, denied=denied, late=late)
    assert exit_code(summary_of(found.run)) == code
    found.run.stopped = "the deadline has passed"
    assert exit_code(summary_of(found.run)) == (1 if code else 0)


@pytest.mark.parametrize(
    ("child", "code"),
    [
        ([asks("a")], 5), ([asks("a"), note("b", None, "a")], 5), ([LOOP], 5), ([asks("a"), note("bad")], 1),
        ([note("bad")], 1),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("depth", [1, 2])
def test_a_plan_above_lacks_what_its_child_lacks(child: list[dict[str, Any]], code: int, depth: int) -> None:
    late = [name for step in child for name in {"loop": ["loop[0]", "loop[1]"], "a": ["a"]}.get(step["id"], [])]
    below = played(*child, late=tuple(late))
    for _ in range(depth):
        ended = result_of(below.run)
        above = played(note("c"))
        step = Step.model_validate({"id": "child", "description": "", "tool": "plan", "args": {"steps": child}})
        above.run.plan = above.run.plan.model_copy(update={"steps": [*above.run.plan.steps, step]})
        state = StepState(status=Status.FAILED, result=Result(ok=False, code=ended["code"], timestamp=NOW))
        state.child = ChildPlan(kind="inline", report=ChildReport.model_validate(ended["report"]))
        above.run.steps["child"], above.run.status = state, PlanStatus.PARTIAL
        assert exit_code(summary_of(above.run)) == code
        below = above


def test_a_plan_that_ended_under_an_earlier_version_has_its_exit_code() -> None:
    data = summary_of(played(asks("a"), late=("a",)).run).to_json()
    del data["lacksAnswers"]
    assert exit_code(Summary.model_validate(data)) == 5


@pytest.mark.parametrize(
    ("denied", "late", "code"),
    [((), ("block.a",), NOBODY_ANSWERED), (("block.b",), (), "DENIED"), (("block.b",), ("block.a",), "DENIED")],
)
def test_a_block_ends_as_what_is_in_it_and_a_persons_denial_counts_for_more(
    denied: tuple[str, ...], late: tuple[str, ...], code: str
) -> None:
    others = [asks(name) for name in ("a", "b") if f"block.{name}" in (*denied, *late)]
    closing = {"finally": [note("clean")]}
    found = played({"id": "block", "steps": others, **closing}, denied=denied, late=late)
    assert (found.statuses("block"), code_of(found, "block")) == (["skipped"], code)
    assert found.run.status == "partial"


def test_a_resumed_plan_asks_again() -> None:
    found = played(asks("a"), note("c"), late=("a",))
    again = Player(resumed(found.run, "p-r2", NOW)).play()
    assert list(again.schedule.awaiting) == ["a"]


def test_the_prompt_of_an_agent_says_that_it_was_not_denied() -> None:
    text = outcomes_text([ToolOutcome(tool="t", args="{}", ok=False, state="unanswered", text=WHY)])
    how = "(not made: it needs a person's approval, and no decision came in time; it was not denied)"
    assert text == f"t {{}} {how} [ERROR]: {WHY}"

"""In which worktree a step works, and what goes along to what it starts. Pure: plain values in and out."""

from __future__ import annotations

from typing import Any

from plansurvive.features.worktrees.model import MERGE, WorktreeChoice
from plansurvive.features.worktrees.rules import RULES, order_of
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.model import Plan, ToolSpec
from plansurvive.plans.run import Options, Run
from plansurvive.plans.run.feature import RuleSet

RULE_SET = RuleSet([RULES])


def run(*steps: dict[str, Any], **options: Any) -> Run:
    plan = Plan.model_validate(
        {"id": "p", "title": "t", "steps": [{"description": "", "args": {}, **each} for each in steps]}
    )
    tools = {name: ToolSpec(name=name, description="", args_schema={}) for name in ("t", MERGE)}
    return Run.of(plan, Options(parts=options), Facts(tools=tools), {})


def test_a_plan_or_agent_below_a_step_works_in_its_worktree_and_a_next_run_in_the_same() -> None:
    found = run({"id": "s", "tool": "t", "worktree": True, "description": "Fix it"})
    step = found.plan.steps[0]
    order = order_of(found, step)
    assert order is not None
    assert (order.plan, order.tree, order.step, order.title) == ("p", "s", "s", "Fix it")
    (part,) = RULE_SET.parts_for_child(found, step, None).values()
    below = run({"id": "call_1", "tool": "t"}, worktrees=part)
    assert order_of(below, below.plan.steps[0]) == order
    assert RULE_SET.parts_for_next(found) == {"worktrees": WorktreeChoice(origin="p")}
    again = run({"id": "s", "tool": "t", "worktree": True}, worktrees=WorktreeChoice(origin="first"))
    assert order_of(again, again.plan.steps[0]).plan == "first"  # type: ignore[union-attr]


def test_a_plan_without_worktrees_has_nothing_of_them_in_its_history() -> None:
    found = run({"id": "s", "tool": "t"})
    assert order_of(found, found.plan.steps[0]) is None
    assert RULE_SET.parts_for_next(found) == RULE_SET.parts_for_child(found, found.plan.steps[0], None) == {}
    assert found.options.parts == {}
    assert "worktree" not in found.plan.model_dump_json(exclude_defaults=True)

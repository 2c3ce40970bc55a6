"""A task list as a plan: a step of an agent per task, in order, and nothing in a task is taken for a reference."""

from __future__ import annotations

import pytest

from plansurvive.features.agents.model.as_plan import plan_of_tasks
from plansurvive.features.agents.model.order import AgentOrder, step_args
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.plans.expressions.references import fill_text, find, literal
from plansurvive.plans.model import Plan
from plansurvive.plans.views.models.agents import AgentLimits

BASE = Plan(id="web", steps=[])


def test_every_task_is_a_step_of_an_agent_that_waits_for_those_before() -> None:
    plan = plan_of_tasks(TaskList.of(["Make it", "Test it", "Ship it"]), BASE, "Make,\ntest and ship it", {})
    assert [step.id for step in plan.steps] == ["task_1", "task_2", "task_3"]
    assert {step.tool for step in plan.steps} == {"agent"}
    assert [step.args["objective"] for step in plan.steps] == ["Make it", "Test it", "Ship it"]
    assert [step.depends_on for step in plan.steps] == [[], ["task_1"], ["task_1", "task_2"]]
    assert (plan.id, plan.title) == ("web", "Make, test and ship it")


def test_limits_hold_for_every_step_and_the_form_of_the_answer_for_the_last_one() -> None:
    order = AgentOrder(request="x", tools=["a"], limits=AgentLimits(tokens=9), output_schema={"type": "object"})
    args = step_args(order)
    assert args == {"tools": ["a"], "outputSchema": {"type": "object"}, "maxTokens": 9}
    first, last = plan_of_tasks(TaskList.of(["one", "two"]), BASE, "x", args).steps
    assert first.args == {"objective": "one", "tools": ["a"], "maxTokens": 9}
    assert last.args == {"objective": "two", **args}


def test_an_order_without_limits_has_no_arguments() -> None:
    assert step_args(AgentOrder(request="x")) == {}


@pytest.mark.parametrize("text", ["$step_1", "$$1", "$", "write {{step_1}} and {{ inputs.x }}", "$5 {{a}}", "plain {{"])
def test_a_task_that_looks_like_a_reference_is_told_as_it_stands(text: str) -> None:
    plan = plan_of_tasks(TaskList.of([text]), BASE, "x", {})
    assert find(plan.steps[0].args) == []
    assert fill_text(literal(text), {}) == text

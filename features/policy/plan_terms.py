"""What a plan says itself of who must approve its steps, against what its workers can hold it to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.features.coding_agents.model import TOOL as CODING_AGENT
from plansurvive.features.policy.model import NO_CALLS
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.model import ApprovalRule, Plan, Problem, Step, ToolSpec

CODE = "BAD_APPROVAL"


def rules_in(plan: Plan) -> dict[str, ApprovalRule]:
    """By the path of each step that says who must approve it, what it says; under "" what the plan's defaults do."""
    found = {path: rule for path, _, rule in _saying(plan)}
    default = plan.defaults.approval
    return found | ({"": default} if default is not None and default.names_people else {})


def problems(plan: Plan, tools: Mapping[str, ToolSpec], *, knows_people: bool) -> Iterator[Problem]:
    """Why its workers cannot have certain people approve a step. `knows_people`: their policy has keys of people."""
    named = list(rules_in(plan))
    if not named:
        return
    if not knows_people:
        text = "the worker's policy.toml has no keys of people or pages, so it cannot tell who approves; add one there"
        field = "approval" if named[0] else "defaults.approval"
        yield Problem(
            code=CODE,
            step_id=named[0] or None,
            field=field,
            message=f"{text}: `plan keys person NAME` or `plan keys page NAME`",
        )
        return
    found = {each.step_id for each in without_calls(plan)}
    yield from without_calls(plan)
    for path, step, _ in _saying(plan):
        spec = tools.get(step.tool)
        if path not in found and spec is not None and not spec.judged:
            text = f"a step of {step.tool} does not ask certain people yet; say it on a step of another tool"
            yield Problem(code=CODE, step_id=path, field="approval", message=text)


def without_calls(plan: Plan) -> Iterator[Problem]:
    """Steps that say who must approve them and never ask certain people, whatever worker and policy there are."""
    for path, step, _ in _saying(plan):
        if not step.tool:
            text = "it makes no call itself; say who must approve on the steps inside it"
        elif step.tool in NO_CALLS:
            text = (
                f"a step of {step.tool} makes no call to approve; say who must approve on the steps that depend on it"
            )
        elif step.tool == CODING_AGENT:
            text = (
                "a coding_agent step does not ask certain people; say with rules of policy.toml who must approve its"
                ' turns (tool = "coding_agent") and its calls ("coding_agent.*", "run_command", "write_file")'
            )
        else:
            continue
        yield Problem(code=CODE, step_id=path, field="approval", message=text)


def _saying(plan: Plan) -> Iterator[tuple[str, Step, ApprovalRule]]:
    for path, step in walk(plan):
        if step.approval is not None and step.approval.names_people:
            yield path, step, step.approval

"""Finds the child plans of a plan, and the one in which a step is decided that is named from above: `deploy/upload`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from temporalio.client import Client

from client.ids import plan_id, recorded_id
from client.rpc import ask_view
from plans.children.state import MAX_NESTING
from plans.errors import PlanError, Refused
from plans.views.models import BriefStep, BriefView, InsidePage, StepView
from plans.views.queries import BRIEF
from plans.views.safe_text import line


def parts(path: str) -> list[str]:
    """A path of steps in its parts: split at each `/` outside of the brackets of an instance (`load[a/b].check`)."""
    found, depth = [""], 0
    for character in path:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "/" and depth <= 0:
            found.append("")
        else:
            found[-1] += character
    return found


async def located(client: Client, plan: str, path: str) -> tuple[str, str]:
    """The plan and the step that a path means: `deploy/upload` is step `upload` of the child plan of step `deploy`.

    Asks no plan for a path of one part. Raises Refused (UNKNOWN_STEP), and as `client.rpc.ask`.
    """
    names = parts(path)
    for number, name in enumerate(names[:-1]):
        if number >= MAX_NESTING:
            raise Refused(f"no plan is nested {number} deep", "UNKNOWN_STEP")
        view = await ask_view(client, plan, BriefView, "plan", BRIEF)
        child = next((step.child for step in view.steps if step.id == name), None)
        if child is None and "[" in name:  # inside a loop: views have a few of those only
            page = await ask_view(client, plan, InsidePage, "inside", {"stepId": name, "limit": 1})
            child = page.step.child if page.step else None
        found = recorded_id(child.plan_id) if child else None
        if found is None:
            text = (
                f"step '{line(name)}' of plan '{plan_id(plan)}' runs no plan; `plan show {plan_id(plan)}` lists steps"
            )
            raise Refused(text, "UNKNOWN_STEP")
        plan = found
    return plan, names[-1]


async def below(
    client: Client, steps: Sequence[BriefStep | StepView], prefix: str = ""
) -> AsyncIterator[tuple[str, str]]:
    """The child plans of a plan with these steps, and those below them: id, and path of the step. Parents come first.

    A child that does not answer is named, and what is below it is left out.
    """
    for step in steps:
        name = recorded_id(step.child.plan_id) if step.child else None
        if name is None:
            continue
        path = f"{prefix}{step.id}"
        yield name, path
        if path.count("/") >= MAX_NESTING:
            continue
        try:
            view = await ask_view(client, name, BriefView, "plan", BRIEF)
        except PlanError:
            continue
        async for each in below(client, view.steps, f"{path}/"):
            yield each


def asking(steps: list[BriefStep]) -> list[str]:
    """Ids of the plans and agents below that await decisions, as their parent knows."""
    found = [asked.plan_id for step in steps if step.child for asked in step.child.pending]
    found += [step.agent_asks.agent_id for step in steps if step.agent_asks]
    return [name for name in dict.fromkeys(found) if recorded_id(name)]

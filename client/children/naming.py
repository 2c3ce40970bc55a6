"""Finds the plan in which a step is decided that is named from above: `deploy/upload`."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.client import Client

from client.ids import plan_id, recorded_id
from client.rpc import ask_view
from plans.children.state import MAX_NESTING
from plans.errors import Refused
from plans.views.models import BriefStep, BriefView, InsidePage
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


def asking(steps: Sequence[BriefStep]) -> list[str]:
    """Ids of the plans and agents below that await decisions, as their parent knows; in loops those that are listed."""
    listed = [each for step in steps for each in (step, *step.instances)]
    found = [asked.plan_id for step in listed if step.child for asked in step.child.pending]
    found += [step.agent_asks.agent_id for step in listed if step.agent_asks]
    return [name for name in dict.fromkeys(found) if recorded_id(name)]

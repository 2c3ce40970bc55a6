"""Finds steps by their names: in the plan itself, and in one below that is named from above, `deploy/upload`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NoReturn

from temporalio.client import Client

from plansurvive.client.feature import read_run
from plansurvive.client.ids import plan_id, recorded_id
from plansurvive.client.rpc import PATIENCE, ask, ask_view
from plansurvive.plans.child_state import MAX_NESTING
from plansurvive.plans.errors import PlanError, Refused
from plansurvive.plans.flow.ids import is_pattern
from plansurvive.plans.run import Run
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import BriefStep, BriefView, InnerStep, InsidePage, listed_steps
from plansurvive.plans.views.queries import BRIEF


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
    """The plan or agent and the step that a path means: `deploy/upload` is step `upload` of the plan of step `deploy`.

    `deploy/review/call_2` is a call of the agent that works on step `review` of that plan, once it asks.
    Asks no plan for a path of one part. Raises Refused (UNKNOWN_STEP), and as `client.rpc.ask`.
    """
    names = parts(path)
    for number, name in enumerate(names[:-1]):
        _check_depth(number)
        plan = await _below_step(client, plan, name)
    return plan, names[-1]


async def all_located(client: Client, plan: str, path: str) -> dict[str, tuple[str, str]]:
    """The same of a path of which parts may be patterns, `each[*].deploy/upload`, by path: the plans that run now.

    Raises as `located`, and where no plan or agent is below what fits a part.
    """
    *above, last = parts(path)
    places = {"": plan}
    for number, name in enumerate(above):
        _check_depth(number)
        found = dict[str, str]()
        for prefix, place in places.items():
            if is_pattern(name):
                steps = await _fitting(client, place, name)
                found |= {f"{prefix}{step.id}/": below for step in steps if (below := _below(step))}
            else:
                found[f"{prefix}{name}/"] = await _below_step(client, place, name)
        if not found:
            _refused(plan, "/".join(above[: number + 1]))
        places = found
    return {f"{prefix}{last}": (place, last) for prefix, place in places.items()}


async def inside(client: Client, plan: str, step_id: str, **asked: Any) -> InsidePage:
    """The step itself and what is inside it, as `plans.execution.messages.InsideAsked` asks. Raises as `located`."""
    try:
        return await ask_view(client, plan, InsidePage, "inside", {"stepId": step_id, **asked})
    except ValueError:  # an empty answer
        raise await no_such_step(client, plan, step_id) from None


async def the_step(client: Client, plan: str, step_id: str) -> InnerStep:
    """One step, also inside a block or loop. Raises Refused (UNKNOWN_STEP), also for a pattern."""
    found = (await inside(client, plan, step_id, limit=1, direct=True)).step
    if found is None:
        how = f"name one of those that `plan show {plan_id(plan)} '{line(step_id)}'` lists"
        raise Refused(f"'{line(step_id)}' names several steps; {how}", "UNKNOWN_STEP")
    return found


async def no_such_step(client: Client, plan: str, step_id: str) -> Refused:
    """What is raised of a step that a plan or agent does not have."""
    with suppress(PlanError):  # a Run may be too large for an answer
        return unknown_step(step_id, await run_of(client, plan, 2.0))
    return Refused(f"the plan has no step '{line(step_id)[:200]}'; `plan show` lists its steps", "UNKNOWN_STEP")


async def run_of(client: Client, plan: str, patience: float = PATIENCE) -> Run:
    """The Run of a plan, or of an agent. Raises as `client.rpc.ask`."""
    state = await ask(client, plan, "state", patience=patience)
    return read_run(state["run"] if "order" in state else state)


async def _below_step(client: Client, plan: str, name: str) -> str:
    """The plan or agent below a step. Raises Refused (UNKNOWN_STEP)."""
    view = await ask_view(client, plan, BriefView, "plan", BRIEF)
    step: BriefStep | None = next((step for step in view.steps if step.id == name), None)
    if step is None:  # inside others, of which views have a few only
        step = await the_step(client, plan, name)
    return _below(step) or _refused(plan, name)


async def _fitting(client: Client, plan: str, pattern: str) -> list[InnerStep]:
    """The steps that fit a pattern and have not ended."""
    found, since = list[InnerStep](), 0
    while True:
        page = await inside(client, plan, pattern, since=since, limit=500, unfinished=True)
        found += page.steps
        if page.next is None:
            return found
        since = page.next


def _below(step: BriefStep | None) -> str | None:
    """The plan that a step runs, or the agent that asks for it."""
    if step is not None and step.child:
        return recorded_id(step.child.plan_id)
    return recorded_id(step.agent_asks.agent_id) if step is not None and step.agent_asks else None


def _check_depth(number: int) -> None:
    if number >= MAX_NESTING:
        raise Refused(f"no plan is nested {number} deep", "UNKNOWN_STEP")


def _refused(plan: str, name: str) -> NoReturn:
    text = (
        f"step '{line(name)}' of plan '{plan_id(plan)}' runs no plan, and no agent of it asks anything now;"
        f" `plan show {plan_id(plan)}` lists steps, `plan pending {plan_id(plan)}` what is asked"
    )
    raise Refused(text, "UNKNOWN_STEP")


def asking(steps: Sequence[BriefStep]) -> dict[str, bool]:
    """Ids of the plans and agents below that await decisions, as their parent knows; in loops those that are listed.

    True: more is awaited below than the child reports, so it is asked for what is below it in turn.
    """
    found: dict[str, bool] = {}
    for each in listed_steps(steps):
        if each.child and each.child.more:
            found[each.child.plan_id] = True
        elif each.child:
            found |= {asked.plan_id: False for asked in each.child.pending}
        if each.agent_asks:
            found[each.agent_asks.agent_id] = False
    return {name: whole for name, whole in found.items() if recorded_id(name)}

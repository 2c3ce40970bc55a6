"""What a checked plan would do if it were started now."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client

from client.caching.earlier import earlier_run
from client.forecast.around import Machine
from client.forecast.earlier import Earlier, earlier_runs
from client.local_tools import known_tools
from client.requests.plan_request import Request
from client.requests.workspaces import asking_in
from plans.activity_io import Facts
from plans.definition.validation import input_values
from plans.definition.will_ask import Asking
from plans.flow.ids import template_of
from plans.forecast.models import Forecast, ForeseenStep
from plans.forecast.walk import Walk
from plans.model import DEFAULT_PARALLEL
from plans.run import Run
from runtime.errors import NotConnected
from runtime.settings import Settings

_Number = TypeVar("_Number", int, float)
NO_SERVER = "no Temporal server runs, so nothing is known of earlier runs"


async def forecast(request: Request, settings: Settings, client: Client | None, *, by: str = "") -> Forecast:
    """What the plan of a request would do if it were started now on this machine. Starts and changes nothing.

    `client`: of the server with the earlier runs; None: there is none. Raises NotConnected, PlanNotFound for an unknown
    `--since`.
    """
    title, notes = request.plan.title or request.file.title, list[str]()
    since, earlier = "", Earlier()
    if client is None:
        notes.append(NO_SERVER)
        if request.flags.since:
            raise NotConnected("--since needs the server that has the earlier run; `plan up` starts it")
    else:
        since = await earlier_run(client, request.flags.since, title) if request.flags.since else ""
        earlier = await earlier_runs(client, title, settings.cost_of)
    walk = await asyncio.to_thread(_walked, request, settings, by, since)
    asking = {each.step_id: each for each in _asking(request, settings, walk.run.facts.workspace) if each.first_run}
    steps = [_complete(each, asking, earlier) for each in walk.found.values()]
    limit = walk.run.options.max_parallel or walk.run.plan.max_parallel or DEFAULT_PARALLEL
    seconds, untimed = _time(steps, walk.after, limit)
    if request.plan.finally_:
        notes.append("the steps of `finally` run at the end, whatever happens, and were not looked at")
    return Forecast(
        title=title, workspace=walk.run.facts.workspace, steps=steps, more=walk.more, seconds=seconds, untimed=untimed,
        tokens=_middle(earlier.tokens) if earlier.tokens else None,
        cost=_middle(earlier.cost) if earlier.cost else None, earlier=earlier.runs, notes=notes,
    )  # fmt: skip


def _walked(request: Request, settings: Settings, by: str, since: str) -> Walk:
    options = request.options(settings, local=True, by=by, since=since)
    place = options.workspace or str(settings.workspace or Path.cwd())
    facts = Facts(tools=known_tools(settings), all_tools=True, workspace=place)
    inputs = input_values(request.plan, request.inputs)[0]
    # What asks is found out from the plan; here every approval counts as given.
    run = Run.of(request.plan, options.model_copy(update={"approve_all": True, "review": False}), facts, inputs)
    walk = Walk(run, Machine(settings, place), datetime.now(UTC))
    walk.steps()
    return walk


def _asking(request: Request, settings: Settings, workspace: str) -> list[Asking]:
    tools = known_tools(settings)
    return asking_in(request.plan, Path(workspace), tools, settings, approve_all=request.flags.yes)


def _complete(step: ForeseenStep, asking: dict[str, Asking], earlier: Earlier) -> ForeseenStep:
    """The step with why it asks, and how long it takes."""
    if step.outlook not in ("run", "depends"):
        return step
    asks = asking.get(template_of(step.step_id))
    seconds = step.seconds if step.seconds is not None else earlier.seconds(step.step_id, step.tool)
    return step.model_copy(update={"asks": asks.reason if asks else "", "seconds": seconds if step.tool else None})


def _time(steps: list[ForeseenStep], after: dict[str, list[str]], limit: int) -> tuple[float | None, int]:
    """Seconds that a plan takes at least with so many steps at once, and for how many steps no time is known."""
    ends: dict[str, float] = {}
    for step in steps:
        began = max((ends.get(name, 0.0) for name in after.get(step.step_id, ())), default=0.0)
        ends[step.step_id] = began + (step.seconds or 0.0)
    # A block ends after what is inside it, which stands behind it in the list.
    known = [step.seconds for step in steps if step.seconds is not None]
    untimed = sum(step.seconds is None for step in steps if step.tool and step.outlook in ("run", "depends"))
    longest = max(ends.values(), default=0.0)
    return (max(longest, math.fsum(known) / limit) if known or not untimed else None), untimed


def _middle(found: list[_Number]) -> _Number:
    return sorted(found)[len(found) // 2]

"""What a checked plan would do if it were started now."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client

from plansurvive.client.feature import language, rules_of_features, views_of_features
from plansurvive.client.local_tools import known_tools
from plansurvive.client.requests.plan_request import Request
from plansurvive.client.requests.workspaces import asking_in
from plansurvive.features.forecast.earlier import Earlier, earlier_runs
from plansurvive.features.forecast.machine import Machine
from plansurvive.features.forecast.model import Forecast, ForeseenStep, ForeseenUndo
from plansurvive.features.forecast.walk import Walk
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.definition import scopes
from plansurvive.plans.definition.checks.validation import input_values
from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.model import DEFAULT_PARALLEL
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import Run
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners

_Number = TypeVar("_Number", int, float)
NO_SERVER = "no Temporal server runs, so nothing is known of earlier runs and of workers"
NO_WORKER = "no worker polls the queue '{}' now, so its steps would wait for one"


async def forecast(request: Request, settings: Settings, client: Client | None, *, by: str = "") -> Forecast:
    """What the plan of a request would do if it were started now on this machine. Starts and changes nothing.

    `client`: of the server with the earlier runs; None: there is none. Raises NotConnected, PlanNotFound for an unknown
    `--since`.
    """
    title, notes = request.plan.title or request.file.title, list[str]()
    if client is None:
        notes.append(NO_SERVER)
    chosen = await request.chosen(client, lambda _: None)
    earlier = await earlier_runs(client, title, settings.cost_of) if client else Earlier()
    walk = await asyncio.to_thread(_walked, request, settings, by, chosen)
    notes += [NO_WORKER.format(queue) for queue in walk.queues if client and not await listeners(client, queue)]
    asking = await asyncio.to_thread(_asking, request, settings, walk)
    steps = [_complete(each, asking, earlier, walk) for each in walk.found.values()]
    limit = walk.run.options.max_parallel or walk.run.plan.max_parallel or DEFAULT_PARALLEL
    seconds, untimed = needed(steps, walk.after, walk.within, limit)
    return Forecast(
        title=title, workspace=walk.run.facts.workspace, steps=steps, more=walk.more, seconds=seconds, untimed=untimed,
        rollback=walk.run.plan.rollback, undos=list(_undos(walk, asking)),
        tokens=_middle(earlier.tokens) if earlier.tokens else None,
        cost=_middle(earlier.cost) if earlier.cost else None, earlier=earlier.runs, notes=notes,
    )  # fmt: skip


def _walked(request: Request, settings: Settings, by: str, chosen: Mapping[str, Part]) -> Walk:
    options = request.options(settings, local=True, by=by, chosen=chosen)
    place = options.workspace or str(settings.workspace or Path.cwd())
    facts = Facts(tools=known_tools(settings), all_tools=True, workspace=place)
    inputs = input_values(request.plan, request.inputs)[0]
    # What asks is found out from the plan; here every approval counts as given.
    run = Run.of(request.plan, options.model_copy(update={"approve_all": True, "review": False}), facts, inputs)
    run.language, run.views = language(), views_of_features()
    walk = Walk(run, Machine(settings, place), datetime.now(UTC), rules_of_features())
    walk.steps()
    return walk


def _asking(request: Request, settings: Settings, walk: Walk) -> dict[str, str]:
    """Why steps would wait for a person, by their ids without items."""
    tools, found = known_tools(settings), dict[str, str]()
    looked_at = {template_of(known.removesuffix("/")) for known in walk.plans}
    for prefix, run in walk.plans.items():
        rule = "" if run.options.waivers else "a plan that no person wrote"
        place, plan = Path(run.facts.workspace), run.plan.model_copy(update={"rollback": True})  # to look at undos
        for each in asking_in(plan, place, tools, settings, approve_all=request.flags.yes, unwaived=rule):
            name = f"{prefix}{each.step_id}"
            is_looked_at = each.code == "PLAN" and template_of(name) in looked_at
            if each.first_run and not is_looked_at:  # its own steps say so
                found[template_of(name)] = each.reason
    return found


def _undos(walk: Walk, asking: Mapping[str, str]) -> Iterator[ForeseenUndo]:
    """What would undo the steps of the plan and of those below it."""
    for prefix, run in walk.plans.items():
        for path, step in scopes.walk(run.plan):
            if step.undo is not None:
                name = template_of(f"{prefix}{path}")
                asks = asking.get(f"{name}.{scopes.UNDO}", "")
                yield ForeseenUndo(step_id=name, tool=step.undo.tool or "", asks=asks)


def _complete(step: ForeseenStep, asking: dict[str, str], earlier: Earlier, walk: Walk) -> ForeseenStep:
    """The step with why it asks, and how long it takes."""
    if step.outlook not in ("run", "depends"):
        return step
    seconds = step.seconds if step.seconds is not None else earlier.seconds(step.step_id, step.tool)
    asks = asking.get(template_of(step.step_id), "") if step.tool else _asks_inside(step, asking, walk)
    return step.model_copy(update={"asks": asks, "seconds": seconds if step.tool else None})


def _asks_inside(step: ForeseenStep, asking: Mapping[str, str], walk: Walk) -> str:
    """Why what is inside a block or loop asks that was not gone through; what was says so itself."""
    if step.outlook != "depends" or step.step_id in walk.within.values():
        return ""
    name, parts = template_of(step.step_id), f".{scopes.UNDO}."
    inside = [each for each in asking if each == name or each.startswith(f"{name}.")]
    found = [each for each in inside if parts not in f"{each}."]
    return "; ".join(f"{each}: {asking[each]}" for each in found)


def _middle(found: list[_Number]) -> _Number:
    return sorted(found)[len(found) // 2]


def needed(
    steps: Sequence[ForeseenStep], after: Mapping[str, Sequence[str]], within: Mapping[str, str], limit: int
) -> tuple[float | None, int]:
    """Seconds that a plan takes at least with so many steps at once, and for how many steps no time is known.

    `steps`: each behind what it waits for and what it is in. `after`, `within`: ids of these. A step that runs a plan
    and whose time is known counts with that, and nothing in it does.
    """
    spans = _Spans(steps, after, within)
    known = [spans.own[step.step_id] for step in spans.counted if step.seconds is not None]
    untimed = sum(
        step.seconds is None and not spans.inside[step.step_id]
        for step in spans.counted
        if step.tool and step.outlook in ("run", "depends")
    )
    longest = max((spans.end(step.step_id) for step in spans.counted), default=0.0)
    return (max(longest, math.fsum(known) / limit) if known or not untimed else None), untimed


class _Spans:
    """When each step begins and ends, in seconds from the plan's start."""

    def __init__(
        self, steps: Sequence[ForeseenStep], after: Mapping[str, Sequence[str]], within: Mapping[str, str]
    ) -> None:
        self.own = {step.step_id: step.seconds or 0.0 for step in steps}
        self.inside = defaultdict[str, list[str]](list)
        self.counted: list[ForeseenStep] = []
        self._began: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        whole = set[str]()  # steps that are timed with all that is in them, and all of that
        for step in steps:
            name, place = step.step_id, within.get(step.step_id, "")
            if place in whole:
                whole.add(name)
                continue
            if step.tool and step.seconds is not None:
                whole.add(name)
            self.counted.append(step)
            if place:
                self.inside[place].append(name)
            began = max((self.end(each) for each in after.get(name, ()) if each in self._began), default=0.0)
            self._began[name] = max(began, self._began.get(place, 0.0))

    def end(self, name: str) -> float:
        """When a step has ended, and all in it. Asked for once all of that is known."""
        if name not in self._ended:
            inside = (self.end(each) for each in self.inside[name])
            self._ended[name] = max([self._began[name] + self.own[name], *inside])
        return self._ended[name]

"""The reach of a segment: the steps of the plan that it can come to, from those that are ready.

They are the ready ones, the loops whose next items may begin, and all that waits for nothing else than these and for
what has ended. A block or loop is in the reach as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.run import DONE


def reach(schedule: Schedule, ready: Iterable[str], limit: int) -> list[str]:
    """The steps of the plan, at most `limit`, that a segment can come to from these ready ones, wherever they are.

    None while the plan is being closed: what undoes a step belongs to that step, and is not carried without it.
    """
    if schedule.run.closing is not None:
        return []
    found, missing = dict[str, None](), dict[str, int]()
    states = schedule.run.steps
    # Every loop that may begin an item does so in turn: without one of them, the others would not stay in step with it.
    loops = dict.fromkeys(_place_in_plan(schedule, name) for name in schedule.containers.hungry)
    queue = deque(dict.fromkeys([*loops, *(_place_in_plan(schedule, name) for name in ready)]))
    limit += len(loops)
    while queue and len(found) < limit:
        found[name := queue.popleft()] = None
        # Its last dependency brings a step in, and so each comes once. What it waits for is counted once: a step that
        # joins thousands depends on each of those found.
        for dependent in schedule.dependents(name):
            if dependent not in missing:
                missing[dependent] = sum(states[need].status not in DONE for need in schedule.needs(dependent))
            missing[dependent] -= 1
            if not missing[dependent]:
                queue.append(dependent)
    return list(found)


def _place_in_plan(schedule: Schedule, name: str) -> str:
    """The step of the plan that a step is, or is in."""
    for node in schedule.outline.ancestors(name):
        name = node.id
    return name

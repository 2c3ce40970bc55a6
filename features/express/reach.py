"""What of a run goes with a segment: the steps that it can come to, and the values that these use. Never the whole run.

The reach are steps that are ready, and all that waits for nothing else than these and for what has ended. A block or
loop is in it as a whole. Of what has ended before, a step of the reach sees the status, and the value if it uses it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.flow.values import Composer
from plansurvive.plans.model import Step
from plansurvive.plans.run import DONE, StepState, text_of


def reach(schedule: Schedule, ready: Iterable[str], limit: int) -> list[str]:
    """The steps of the plan, at most `limit`, that a segment can come to from these ready ones, wherever they are.

    None while the plan is being closed: what undoes a step belongs to that step, and is not carried without it.
    """
    if schedule.run.closing is not None:
        return []
    states, found = schedule.run.steps, dict[str, None]()
    queue = deque(dict.fromkeys(_of_plan(schedule, name) for name in ready))
    while queue and len(found) < limit:
        found[name := queue.popleft()] = None
        # Its last dependency brings a step in, and so each comes once.
        for dependent in schedule.dependents(name):
            if all(need in found or states[need].status in DONE for need in schedule.needs(dependent)):
                queue.append(dependent)
    return list(found)


def carried(schedule: Schedule, names: Collection[str]) -> str:
    """The run with these steps of the plan alone, as JSON, for `plans.run.run_of`."""
    run, whole = schedule.run, dict.fromkeys(names)
    used = dict[str, bool]()
    for name in names:
        for need, uses in schedule.needs(name).items():
            if need not in whole:
                used[need] = used.get(need, False) or uses
    states = dict[str, StepState]()
    for name, uses in used.items():
        if (state := _ended(schedule, name, uses)) is None:
            whole[name] = None
        else:
            states[name] = state
    steps = [
        each if each.id in whole else _bare(each) for each in run.plan.steps if each.id in whole or each.id in states
    ]
    inside = [name for name in schedule.outline.nodes if _of_plan(schedule, name) in whole]
    small = run.model_copy(
        update={
            "plan": run.plan.model_copy(update={"steps": steps}),
            "steps": states | {name: run.steps[name] for name in inside},
            "opened": {name: run.opened[name] for name in inside if name in run.opened},
            "decisions": {name: run.decisions[name] for name in inside if name in run.decisions},
            "log": [],
            "revisions": [],
            "problems": [],
            "draft": "",
            "agents": {},
            "value": None,
        }
    )
    return text_of(small)


def _of_plan(schedule: Schedule, name: str) -> str:
    """The step of the plan that a step is, or is in."""
    for node in schedule.outline.ancestors(name):
        name = node.id
    return name


def _bare(step: Step) -> Step:
    """A step that has ended: who uses its value needs its name."""
    return Step(id=step.id, tool="ended")


def _ended(schedule: Schedule, name: str, uses: bool) -> StepState | None:
    """The state of a step that has ended, with its value if that is used.

    None: it is a block or loop whose value is partly stored outside history, and has to go along as a whole.
    """
    run, state = schedule.run, schedule.run.steps[name]
    result = state.result
    if result is not None and result.composed and uses:
        value = Composer(run.outline, run.opened, run.steps).composed(name)
        if value.parts:
            return None
        result = result.model_copy(update={"value": value.value, "composed": False})
    elif result is not None and not uses:
        result = result.model_copy(update={"value": None, "large": None, "composed": False})
    carried = StepState.model_validate(state.model_dump(include={"status", "never"}))
    return carried.model_copy(update={"result": result, "changes": state.changes[-1:]})

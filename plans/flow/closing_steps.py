"""The steps that close a plan: `STEP.undo` takes back what STEP did, `finally.ID` runs however the plan ended.

An undo that is one call is the step `STEP.undo`; one with steps of its own is `STEP.undo.ID` for each. They have a
state in the Run like any step, marked with `closes`. What they call is derived from the plan, here and nowhere else.

Names in their arguments and conditions: `value` is the value of the step that is undone, `status` in `finally` the
status that the plan ends with; their siblings and the plan's steps have the ids that the author gave them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from plans.model import Step
from plans.run import Run

UNDO: Final = "undo"
FINALLY: Final = "finally"
VALUE, STATUS = "value", "status"
"""Names that only an undo and only `finally` know."""


def undo_ids(step: Step) -> list[str]:
    """Ids of the steps that undo a step, in the author's order; empty if nothing does."""
    if step.undo is None:
        return []
    return undo_ids_of(step.id, [each.id for each in step.undo.steps or ()])


def undo_ids_of(step_id: str, names: list[str]) -> list[str]:
    """Ids of the steps with these names that undo a step; without names its undo is one call."""
    return [f"{step_id}.{UNDO}.{name}" for name in names] or [f"{step_id}.{UNDO}"]


def finally_ids(run: Run) -> list[str]:
    """Ids of the steps of the plan's `finally`."""
    return [f"{FINALLY}.{step.id}" for step in run.plan.finally_ or ()]


def undoes(step_id: str) -> tuple[str, str]:
    """Of a step that undoes another one: the id of that, and its own name in the undo, empty if it is all of it."""
    if step_id.endswith(f".{UNDO}"):
        return step_id.removesuffix(f".{UNDO}"), ""
    of, _, name = step_id.rpartition(f".{UNDO}.")
    return of, name


def closing_step(run: Run, step_id: str, find: Callable[[str], Step | None] | None = None) -> Step | None:
    """The step with that id if it closes the plan, with what it would call; None for any other.

    `find`: finds a step of the plan faster than a search would.
    """
    state = run.steps.get(step_id)
    if state is None or not state.closes:
        return None
    if state.closes == FINALLY:
        own = next((each for each in run.plan.finally_ or () if f"{FINALLY}.{each.id}" == step_id), None)
        return None if own is None else _of_finally(run, own)
    of, name = undoes(step_id)
    undone = find(of) if find else next((each for each in run.plan.steps if each.id == of), None)
    return None if undone is None else _of_undo(run, undone, name)


def outline(run: Run) -> list[Step]:
    """The plan's steps, and those that close it as far as they have begun."""
    if run.closing is None:
        return run.plan.steps
    steps = {step.id: step for step in run.plan.steps}
    closing = (closing_step(run, name, steps.get) for name, state in run.steps.items() if state.closes)
    return [*run.plan.steps, *(step for step in closing if step is not None)]


def step_of(run: Run, step_id: str) -> Step | None:
    """The step with that id: one of the plan, or one that closes it."""
    return next((step for step in run.plan.steps if step.id == step_id), None) or closing_step(run, step_id)


def id_meant(run: Run, step_id: str, name: str) -> str:
    """The id of the step that a name means in the arguments of a step: an own sibling comes before the plan's steps."""
    state = run.steps.get(step_id)
    if state is None or not state.closes:
        return name
    if state.closes == FINALLY:
        own = f"{FINALLY}.{name}"
    else:
        of, _ = undoes(step_id)
        if name == VALUE:
            return of
        own = f"{of}.{UNDO}.{name}"
    return own if own in run.steps else name


def constants(run: Run, step_id: str) -> Mapping[str, Any]:
    """Values by name that no step has: in `finally`, the status that the plan ends with."""
    state = run.steps.get(step_id)
    if state is None or state.closes != FINALLY or run.closing is None:
        return {}
    return {STATUS: run.closing.ends}


def named_values(run: Run, step: Step) -> set[str]:
    """Names that have a value in the arguments of a step that closes the plan, beyond the ids of completed steps."""
    if not run.steps[step.id].closes:
        return set()
    known = {VALUE, *(name.rpartition(".")[2] for name, state in run.steps.items() if state.closes)}
    meant = {name for name in known if id_meant(run, step.id, name) not in (name, step.id)}
    return meant | set(constants(run, step.id))


def _of_finally(run: Run, step: Step) -> Step:
    wanted = step.on_failure or run.plan.defaults.on_failure
    return step.model_copy(update={
        "id": f"{FINALLY}.{step.id}",
        "depends_on": [f"{FINALLY}.{name}" for name in step.depends_on],
        "on_failure": "stop" if wanted == "stop" else "block",  # the LLM recovers steps of the plan, not what closes it
    })  # fmt: skip


def _of_undo(run: Run, undone: Step, name: str) -> Step | None:
    undo = undone.undo
    if undo is None:
        return None
    common: dict[str, Any] = {"critical": False, "on_failure": "block"}
    if undo.steps is None:
        call = Step(id="undo", tool=undo.tool or "", args=undo.args, description=f"undo {undone.id}", **common)
        return None if name else call.model_copy(update={"id": f"{undone.id}.{UNDO}", "queue": undone.queue})
    own = next((each for each in undo.steps if each.id == name), None)
    if own is None:
        return None
    # Who edits a step may write its undo, but give no waiver: as for the step itself (`approvals.stated`).
    waived = own.requires_approval is False and undone.id in run.edited
    return own.model_copy(update={
        **common,
        "id": f"{undone.id}.{UNDO}.{name}",
        "depends_on": [f"{undone.id}.{UNDO}.{other}" for other in own.depends_on],
        "queue": own.queue or undone.queue,
        "requires_approval": None if waived else own.requires_approval,
        "undo": None,
    })  # fmt: skip

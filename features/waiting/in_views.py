"""What views show of a step that waits for an event, or whose child plan does: its name."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.features.waiting.model import Below
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import Status, StepState
from plansurvive.plans.text.lists import some
from plansurvive.plans.text.safe_text import line

NAMED = 5
"""Names in one row."""


def _event(_: str, step: Step, state: StepState) -> str | None:
    if state.awaiting == "event":
        args = step.args if state.args is None else state.args
        return str(args.get("event"))
    return next(iter(_below(state)), None)


def _below(state: StepState) -> list[str]:
    """The names of the events that steps of the child plan wait for, and steps below it."""
    below = state.known_part(Below) if state.parts and state.status is Status.RUNNING else None
    is_of_call = below is not None and state.child is not None and state.child.plan_id == below.child
    return list(below.names) if below is not None and is_of_call else []


def _rows(_: str, __: Step, state: StepState) -> Iterator[str]:
    if names := _below(state):
        yield f"waits below for {some(names, NAMED, line)}"


IN_VIEWS = InViews("waiting", event=_event, rows=_rows)

"""What views show of a step that waits for an event: its name."""

from __future__ import annotations

from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import StepState


def _event(_: str, step: Step, state: StepState) -> str | None:
    args = step.args if state.args is None else state.args
    return str(args.get("event")) if state.awaiting == "event" else None


IN_VIEWS = InViews("waiting", event=_event)

"""The mark of a step that a segment has run, in `plan show`."""

from __future__ import annotations

from plansurvive.features.express.remarks import remark
from plansurvive.plans.in_views import InViews
from plansurvive.plans.model import Step
from plansurvive.plans.step_state import StepState


def _details(_: str, __: Step, state: StepState) -> list[str]:
    return remark(state.result.parts) if state.result is not None else []


IN_VIEWS = InViews("express", details=_details)

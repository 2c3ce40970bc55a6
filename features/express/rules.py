"""The mark of a step that a segment has run: in its result, where views show it."""

from __future__ import annotations

from pydantic import ValidationError

from plansurvive.features.express.model import ExpressNote
from plansurvive.plans.activity_io import Return
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules


def _settled(run: Run, step: Step, returned: Return) -> ExpressNote | None:  # noqa: ARG001
    if ExpressNote.feature not in returned.parts:
        return None
    try:
        return returned.part(ExpressNote)
    except ValidationError:  # of an activity that was completed by hand
        return None


RULES = Rules("express", settled=_settled)

"""The mark of a step that a segment has run: in its result, where views show it."""

from __future__ import annotations

from functools import lru_cache

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
        return _note(returned.part(ExpressNote).segment)
    except ValidationError:  # of an activity that was completed by hand
        return None


@lru_cache(maxsize=100)
def _note(segment: int) -> ExpressNote:
    """The same for all steps of a segment."""
    return ExpressNote(segment=segment)


RULES = Rules("express", settled=_settled)

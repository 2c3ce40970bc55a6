"""What views and the page of a step say of one that a segment has run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from plansurvive.features.express.model import ExpressNote, segment_id
from plansurvive.plans.views.models import ResultView


def remark(parts: Mapping[str, Any]) -> list[str]:
    """The sentence about a result with these parts; empty if an activity of its own gave it."""
    if ExpressNote.feature not in parts:
        return []
    try:
        note = ExpressNote.model_validate(parts[ExpressNote.feature])
    except ValidationError:  # of an activity that was completed by hand
        return []
    return [f"Express: ran in segment {note.segment}, one activity for several steps ({segment_id(note.segment)})"]


def remarks(result: ResultView) -> list[str]:
    """Which segment ran it."""
    return remark(result.parts)

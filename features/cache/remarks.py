"""What the page of a step says about where its result is from."""

from __future__ import annotations

from plansurvive.features.cache.model import CacheNote
from plansurvive.features.cache.views import reasons_of
from plansurvive.plans.views.models import ResultView


def remarks(result: ResultView) -> list[str]:
    """Which earlier run the result is from, or why the tool was called; empty if nobody asked for earlier results."""
    note = result.parts.get(CacheNote.feature)
    return reasons_of(CacheNote.model_validate(note)) if note else []

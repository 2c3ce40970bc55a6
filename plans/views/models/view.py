"""The base class of the answers to queries of a plan."""

from __future__ import annotations

from typing import Any, Self

from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.model import Value
from plansurvive.plans.run import gc_disabled


class View(Value):
    """Base of the answers to queries of a plan."""

    @classmethod
    def read(cls, answer: Any, views: ViewSet = NO_VIEWS) -> Self:
        """Parse the answer of a worker of any version: JSON data or, faster, JSON text as bytes.

        `views`: what features add, which the cards in it know then. Raises pydantic's ValidationError.
        """
        with gc_disabled():
            if isinstance(answer, bytes):
                return cls.model_validate_json(answer, extra="ignore", context=views)
            return cls.model_validate(answer, extra="ignore", context=views)

    def to_json(self) -> dict[str, Any]:
        """The view as JSON data, without unset fields."""
        return self.model_dump(mode="json", exclude_unset=True)

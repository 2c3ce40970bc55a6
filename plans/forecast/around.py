"""What a forecast asks the machine about a plan and its calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from plansurvive.plans.children.orders import Source
from plansurvive.plans.children.state import LoadedPlan
from plansurvive.plans.forecast.models import ForeseenChange
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run


class Taken(NamedTuple):
    """An earlier result that a call would take. `is_known`: its value is here, and not stored outside."""

    place: str
    value: Any = None
    is_known: bool = True


class Around(Protocol):
    """What can be found out about a call without making it."""

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:
        """The earlier result that the call would take; else why there is none, empty if none is asked for."""

    def change(self, step_id: str, step: Step, args: Mapping[str, Any]) -> ForeseenChange | None:
        """What the call would do to the file it names; None if it names none, or it is not known."""

    def load(self, workspace: str, source: Source) -> LoadedPlan:
        """The content of a plan file or a template. Raises PlanError."""

    def at(self, workspace: str) -> Around:
        """The same for a child plan that works in another directory."""

"""The seam of forecasts: a feature says which result would be there without the tool, and which plan a step would run.

Such a feature has a side `foresight`, which a forecast asks for each call and child plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plansurvive.activities.sandbox.sandbox import Sandbox
from plansurvive.activities.tools.tool import Tool
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.forecast.model import Taken
from plansurvive.plans.children.orders import Source
from plansurvive.plans.children.state import LoadedPlan
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.value_store import ValueStore


@dataclass(frozen=True)
class Site:
    """What calls in one workspace of this machine would have."""

    settings: Settings
    workspace: str
    tools: Mapping[str, Tool]
    values: ValueStore
    effects: Effects
    sandbox: Sandbox


class Foresight:
    """Foresees the calls of one forecast, in their order. Changes nothing. Override what it fills."""

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:  # noqa: ARG002
        """The result that the call would have without its tool; else why none, empty if nobody asks for one."""
        return ""

    def loaded(self, workspace: str, source: Source) -> LoadedPlan | None:  # noqa: ARG002
        """The content of a plan file or a template. None: it loads none. Raises PlanError."""
        return None

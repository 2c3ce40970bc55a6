"""The seam of forecasts: a feature says which result would be there without the tool, and which plan a step would run.

Such a feature has a side `foresight`, which a forecast asks for each call and child plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from plansurvive.activities.sandbox.sandbox import Sandbox
from plansurvive.activities.tools.tool import Tool
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.forecast.model import Below, Taken
from plansurvive.plans.model import Step
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import RuleSet
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

    def below(
        self, run: Run, step: Step, args: Mapping[str, Any], now: datetime, rules: RuleSet  # noqa: ARG002
    ) -> Below | None:  # fmt: skip
        """The plan that the step would run, checked by this machine's tools; None: it runs none of the feature's.

        Raises PlanError: it cannot be loaded, is not valid, or is nested too deep. Example: `children`.
        """
        return None

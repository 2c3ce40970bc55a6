"""The seam of forecasts: a feature whose layer may give a result instead of the tool says which one that would be.

Such a feature has a side `foresight`, which a forecast of the plan asks for each call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from plansurvive.activities.sandbox.sandbox import Sandbox
from plansurvive.activities.tools.tool import Tool
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.forecast.model import Taken
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


class Foresight(Protocol):
    """Foresees the calls of one forecast, in their order. Changes nothing."""

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:
        """The result that the call would have without its tool; else why none, empty if nobody asks for one."""

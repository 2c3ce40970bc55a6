"""What differs between the version of a plan that a person saw and the one there is now.

The versions that this page has shown are remembered, up to a number; of versions that the LLM replaced, the plan itself
remembers some. For others there is the change log, line by line.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from plansurvive.apps.web.drafts.reviewed import Reviewed
from plansurvive.client.differences.plan_diff import PlanDiff, plan_diff
from plansurvive.plans.model import Plan
from plansurvive.plans.run import Run, as_it_stands
from plansurvive.plans.views.models.records import ChangeView

MAX_KNOWN = 200
"""Versions that are remembered."""
MAX_STEPS = 50_000
"""Steps of all remembered versions together."""


@dataclass(frozen=True)
class Since:
    """What has changed since a version."""

    version: int
    now: int
    changes: list[ChangeView]
    """From the change log, oldest first."""
    diff: PlanDiff | None
    """None: that version is not known any more."""


class KnownVersions:
    """Plans by id and version, the ones seen last."""

    def __init__(self) -> None:
        self._plans: OrderedDict[tuple[str, int], Plan] = OrderedDict()
        self._steps = 0

    def note(self, run: Run) -> None:
        """Remember the version that a run has now."""
        key = (run.plan.id or "", run.plan.version)
        if key in self._plans:
            self._plans.move_to_end(key)
            return
        self._plans[key] = as_it_stands(run)
        self._steps += len(run.plan.steps)
        while len(self._plans) > MAX_KNOWN or (self._steps > MAX_STEPS and len(self._plans) > 1):
            self._steps -= len(self._plans.popitem(last=False)[1].steps)

    def at(self, found: Reviewed, version: int) -> Reviewed | None:
        """The plan as it was at a version, with the run of now; None if that version is not known any more."""
        old = self._plans.get((found.run.plan.id or "", version)) or _replaced(found.run, version)
        return replace(found, run=found.run.model_copy(update={"plan": old})) if old else None

    def since(self, found: Reviewed, version: int) -> Since | None:
        """What has changed since a version; None if nothing has."""
        run = found.run
        if version >= run.plan.version or version < 1:
            return None
        changes = [each for each in found.view.changes if each.version > version]
        old = self._plans.get((run.plan.id or "", version)) or _replaced(run, version)
        return Since(version, run.plan.version, changes, plan_diff(old, as_it_stands(run)) if old else None)


def _replaced(run: Run, version: int) -> Plan | None:
    """A version that the LLM replaced, from the plan's change log."""
    return next((each.before for each in run.revisions if each.version == version + 1), None)

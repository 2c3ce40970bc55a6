"""Which calls would take the result of an earlier run, for a forecast. Takes nothing, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.features.cache.entries import Output
from plansurvive.features.cache.in_worker import Results
from plansurvive.features.cache.rules import asked, order_of, refusal
from plansurvive.features.cache.views import reasons_of
from plansurvive.features.forecast.model import Taken
from plansurvive.features.forecast.seam import Foresight, Site
from plansurvive.plans.activity_io import Call
from plansurvive.plans.model import Retry, Step
from plansurvive.plans.run import Run


@dataclass
class ForeseenResults(Foresight):
    """What is kept on this machine, for the calls of one forecast."""

    site: Site
    results: Results | None
    _made: dict[str, Output] = field(default_factory=dict)
    """Files that earlier results would re-create."""

    def earlier(self, run: Run, step_id: str, step: Step, args: Mapping[str, Any]) -> Taken | str:
        """The earlier result that the call would take; else why there is none, empty if none is asked for."""
        spec, order = run.facts.tools[step.tool], order_of(run, step)
        if order is None:
            return refusal(run, step, spec) if asked(run, step, spec) else ""
        tool = self.site.tools.get(step.tool)
        if self.results is None:
            return "PLANS_CACHE is off"
        if tool is None:
            return "its tool is a server's"
        call = Call(
            args=dict(args), plan_id="", step_id=step_id, key="", workspace=self.site.workspace, timeout=1.0,
            retry=Retry(), repeatable=step.repeatable if step.repeatable is not None else tool.spec.repeatable,
        )  # fmt: skip
        workspace = Workspace(self.site.workspace)
        context = ToolContext(call, workspace, self.site.effects, tool.spec.name, sandbox=self.site.sandbox)
        entry, note = self.results.of_call(tool, context, args, order, self.site.values).foreseen(self._made)
        if entry is None:
            return "; ".join(each.removeprefix("its tool was called: ") for each in reasons_of(note)[:3])
        self._made |= {each.path: each for each in entry.outputs}
        return Taken(entry.place, entry.value, is_known=entry.large is None)


def foresight(site: Site) -> Foresight:
    """What would come of calls there."""
    return ForeseenResults(site, Results.of(site.settings, site.tools.values()))

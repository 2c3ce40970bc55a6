"""Which plan a step would run, for a forecast: read by the rules of the worker."""

from __future__ import annotations

from dataclasses import dataclass

from plansurvive.client.feature import library
from plansurvive.features.children.load_plan import PlanLoader
from plansurvive.features.forecast.seam import Foresight, Site
from plansurvive.plans.children.orders import Source
from plansurvive.plans.children.state import LoadedPlan, LoadRequest


@dataclass(frozen=True)
class ForeseenPlans(Foresight):
    """The plan files and templates of this machine."""

    loader: PlanLoader

    def loaded(self, workspace: str, source: Source) -> LoadedPlan:
        """The content of a plan file or a template. Raises PlanError."""
        return self.loader.loaded(LoadRequest(workspace=workspace, **{source.kind: source.value}))


def foresight(site: Site) -> Foresight:
    """What would come of steps there."""
    return ForeseenPlans(PlanLoader(site.settings.state_dir, library=library()))

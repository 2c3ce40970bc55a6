"""The activities `load_plan` and `load_undo`, with the rules of the worker and its client."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.feature import InWorker
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.features.children.load_plan import PlanLoader
from plansurvive.features.children.load_undo import UndoLoader
from plansurvive.features.children.templates import template_problems
from plansurvive.plans.model import Plan, Problem


class Worker(InWorker):
    """What workflows of the feature call."""

    feature = "children"

    def activities(self) -> Sequence[Callable[..., object]]:
        """`load_plan` and `load_undo`."""
        site = ToolEnvironment(rules=WorkspaceRules.of(self.settings))
        plans = PlanLoader(self.settings.state_dir, site, self.others.library)
        return plans.load_plan, UndoLoader(self.client).load_undo

    def problems(self, plan: Plan, workspace: str) -> Sequence[Problem]:
        """Those of the steps that run templates."""
        find = self.others.library.find
        return template_problems(plan, lambda name: find(name, workspace, self.settings.state_dir))


IN_WORKER = Worker

"""The LLM's part in one run of a plan. An agent recovers by itself: it sees what failed."""

from __future__ import annotations

from collections.abc import Sequence

from plansurvive.features.planning.recovering import StepRecovery
from plansurvive.workflows.feature import InRun
from plansurvive.workflows.in_steps import InSteps


class Planning(InRun):
    """What the LLM changes of a plan while it runs."""

    feature = "planning"
    of_agents = False

    def in_steps(self) -> Sequence[InSteps]:
        """Failed steps are recovered."""
        return (StepRecovery(self.execution),)


IN_RUN, WORKFLOWS = Planning, ()

"""The host of one run's files, in its workflow: chosen before the plan begins, left when it is lost."""

from __future__ import annotations

from plansurvive.features.hosts.place import HostPlace, at_home
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.run import Run
from plansurvive.workflows.execution import Execution
from plansurvive.workflows.feature import InRun


class AtHost(InRun):
    """Puts the host in the place of the workers that share a workspace."""

    feature = "hosts"

    def __init__(self, execution: Execution) -> None:
        super().__init__(execution)
        execution.place = HostPlace(execution.run, execution.place.sharer)

    @classmethod
    async def placed(cls, run: Run, facts: Facts) -> Facts:
        """See `at_home`."""
        return await at_home(run, facts)


IN_RUN, WORKFLOWS = AtHost, ()

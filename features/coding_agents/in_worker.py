"""What the workflows of coding agents call in a worker: their turns, and permissions."""

from __future__ import annotations

from collections.abc import Callable

from temporalio.client import Client

from plansurvive.activities.feature import InWorker, MoreTools
from plansurvive.features.coding_agents.turn import Turns
from plansurvive.runtime.settings import Settings


class Worker(InWorker):
    """The coding agents of a worker: agents.toml is read by each turn, so one that is added needs no other worker."""

    feature = "coding_agents"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        super().__init__(client, settings, fault)
        self._turns = Turns(client, settings)

    def tools(self) -> MoreTools | None:
        """One turn as an activity, and what asks for a permission."""
        return self._turns


IN_WORKER = Worker

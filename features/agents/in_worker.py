"""The activity `track_agent`: the worker keeps the history of agent runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plansurvive.activities.feature import InWorker
from plansurvive.features.agents.history_store import AgentTracker, history_store


class Worker(InWorker):
    """What workflows of the feature call."""

    feature = "agents"

    def activities(self) -> Sequence[Callable[..., object]]:
        """`track_agent`."""
        return (AgentTracker(history_store(self.settings)).track_agent,)


IN_WORKER = Worker

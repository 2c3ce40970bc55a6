"""The activity `track_agent`: a run's begin, end, interruption or resumption goes into the agent history.

It never fails a run: what could not be written is returned as a warning, for the run's log. Doing it again changes
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from temporalio import activity

from activities.lifecycle.agent_history import AgentHistory, HistoryWriteFailed
from plans.agents.history import AgentEvent


@dataclass(frozen=True)
class AgentTracker:
    """Records in `history`."""

    history: AgentHistory

    @activity.defn(name="track_agent")
    def track_agent(self, event: AgentEvent) -> str:
        """Record the event; returns a warning, empty when all is well."""
        try:
            return self.history.record(event).warning
        except HistoryWriteFailed as error:
            return f"{error.code}: {error.message}"

"""The signals by which a plan and its children speak about the place of the files that they share."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from plansurvive.plans.execution.messages import read
from plansurvive.plans.hosts.messages import PlaceNews, PlaceReport
from plansurvive.workflows.handlers import MessageHandlers


class PlaceHandlers(MessageHandlers):
    """Adds to MessageHandlers what is said about the place of the files (`workflows.children.place`)."""

    @workflow.signal(
        description="Sent by the plan of an agent or a child plan: leave the host, or where the files are."
    )
    def place(self, *arguments: Any) -> None:
        """Sent by the plan of an agent or a child plan that works at its host (docs/scaling.md#a-workspace-each): leave
        the place with this token, and say so; or where the files are now; or why they could not be moved.
        """
        self._try("place", None, arguments, lambda: self._started().children.place.told(read(PlaceNews, arguments)))

    @workflow.signal(description="Sent by children: a host that takes none of their steps, or that they have left it.")
    def place_report(self, *arguments: Any) -> None:
        """Sent by an agent or child plan at its plan's host: no worker there takes its calls; it has left, and this is
        its newest checkpoint. Counts only from what works on a step now.
        """

        def take() -> None:
            self._started().children.place.reported(read(PlaceReport, arguments))

        self._try("place_report", None, arguments, take)

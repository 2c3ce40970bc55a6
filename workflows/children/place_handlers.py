"""The signals by which a plan and its children speak about the place of the files that they share."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from plans.execution.messages import read
from plans.hosts.messages import PlaceNews, PlaceReport
from workflows.handlers import MessageHandlers


class PlaceHandlers(MessageHandlers):
    """Adds to MessageHandlers what is said about the place of the files (`workflows.children.place`)."""

    @workflow.signal(
        description="Sent by the plan of an agent or a child plan: leave the host, or where the files are."
    )
    def place(self, *arguments: Any) -> None:
        """Leave the place of the plan above, or work where it is now."""
        self._try("place", None, arguments, lambda: self._started().children.place.told(read(PlaceNews, arguments)))

    @workflow.signal(description="Sent by children: a host that takes none of their steps, or that they have left it.")
    def place_report(self, *arguments: Any) -> None:
        """Take over what a child says of the place, and move the files if their host is lost."""

        def take() -> None:
            self._started().children.place.reported(read(PlaceReport, arguments))

        self._try("place_report", None, arguments, take)

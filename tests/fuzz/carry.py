"""A workflow for controls: continues as another one, which then takes its argument as written by itself."""

from __future__ import annotations

from typing import Any

from temporalio import workflow


@workflow.defn(name="Carry")
class Carry:
    """Continues as new as a workflow of the given type, with the given argument."""

    @workflow.run
    async def run(self, kind: str, argument: Any) -> None:
        """Never returns."""
        workflow.continue_as_new(args=[argument], workflow=kind)

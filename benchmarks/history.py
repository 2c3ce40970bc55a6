"""History size of a workflow, over all runs of its continue-as-new chain."""

from __future__ import annotations

from typing import Any, NamedTuple

from temporalio.client import Client, WorkflowHandle, WorkflowHistoryEventFilterType


class Size(NamedTuple):
    """One run's history."""

    events: int
    bytes: int


async def size_of(client: Client, handle: WorkflowHandle[Any, Any]) -> list[Size]:
    """The size of each run's history, beginning with the run of `handle`."""
    sizes: list[Size] = []
    run_id = handle.run_id
    while run_id:
        run = client.get_workflow_handle(handle.id, run_id=run_id)
        info = (await run.describe()).raw_description.workflow_execution_info
        sizes.append(Size(info.history_length, info.history_size_bytes))
        run_id = await _next_run(run)
    return sizes


async def _next_run(run: WorkflowHandle[Any, Any]) -> str:
    last = ""
    events = run.fetch_history_events(event_filter_type=WorkflowHistoryEventFilterType.CLOSE_EVENT)
    async for event in events:
        last = event.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return last

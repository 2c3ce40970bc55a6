"""Exports what a server has of plans, through Temporal's SDK alone: histories of all runs, and descriptions.

    python -m tests.chaos.night.export ADDRESS FOLDER

writes FOLDER/WORKFLOW.json for every workflow of the server, children and agents included.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from temporalio.client import Client, WorkflowHandle

AT_ONCE = 8


async def export(client: Client, folder: Path) -> int:
    """Export everything; returns the number of workflows."""
    folder.mkdir(parents=True, exist_ok=True)
    slots = asyncio.Semaphore(AT_ONCE)
    names = sorted({each.id async for each in client.list_workflows("")})

    async def one(name: str) -> None:
        async with slots:
            (folder / f"{name}.json").write_text(json.dumps(await _exported(client.get_workflow_handle(name), client)))

    await asyncio.gather(*(one(name) for name in names))
    return len(names)


async def _exported(handle: WorkflowHandle[Any, Any], client: Client) -> dict[str, Any]:
    description = (await handle.describe()).raw_description
    run_id, runs = description.workflow_execution_info.first_run_id, []
    while run_id:
        history = await client.get_workflow_handle(handle.id, run_id=run_id).fetch_history()
        runs.append(json.loads(history.to_json()))
        last = history.events[-1]
        run_id = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return {"runs": runs, "description": MessageToDict(description)}


async def main(address: str, folder: str) -> None:
    """Connect and export."""
    print(await export(await Client.connect(address), Path(folder)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    sys.stdout.flush()
    os._exit(0)  # the SDK's threads do not always survive the end of the interpreter

"""A client script: starts a plan, follows it, approves a step and prints the result.

    python examples/client_script.py [WORKSPACE]

Uses the server in TEMPORAL_ADDRESS, or the embedded one, which it starts if necessary. The plan writes a note, reads
it and deletes it; deleting needs approval.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path

from plansurvive import Options, connect, runs

PLAN = {
    "title": "Write, read and remove a note",
    "steps": [
        {"id": "write", "tool": "write_file", "args": {"path": "note.txt", "content": "Plans survive."}},
        {"id": "read", "tool": "read_file", "args": {"path": "note.txt"}, "dependsOn": ["write"]},
        {"id": "remove", "tool": "delete_file", "args": {"path": "note.txt"}, "dependsOn": ["read"]},
    ],
}


async def run(workspace: Path) -> runs.Summary:
    """Run the plan in a directory and return its summary."""
    here = await connect(say=print)  # starts the embedded server and a background worker if there are none
    client = here.client

    options = Options(workspace=str(workspace.resolve()), by="the script")
    started = await runs.start(client, PLAN, options=options, queue=here.settings.task_queue)
    print(f"Started {started.plan_id}; the Temporal UI shows it at {here.link(started.workflow_id)}")

    async for event in runs.watch(client, started.plan_id):
        print(f"  {event.step_id or 'plan':8} {event.logs[0].text if event.logs else event.status}")
        # Any moment will do: a step can be approved before it awaits approval.
        if event.step_id == "read" and event.status == "completed":
            print("  " + await runs.approve(client, started.plan_id, runs.Choice(step_id="remove", by="the script")))

    view = await runs.show(client, started.plan_id)
    read = view.step("read")
    print("The note said:", read.result.value if read and read.result else "nothing")
    return await runs.wait(client, started.plan_id)


def main() -> None:
    """Run the plan, print how it ended, and exit without interpreter teardown (see `client.cli.app.main`)."""
    summary = asyncio.run(run(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print(f"The plan is {summary.status}: {summary.counts}, {summary.duration:.1f} s")
    gc.collect()
    sys.stdout.flush()
    os._exit(0 if summary.is_completed else 1)


if __name__ == "__main__":
    main()

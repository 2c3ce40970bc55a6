"""The bare yardstick: what somebody would write without us, and its worker (`python -m benchmarks.bare`).

Nothing of ours is imported: plain activities without heartbeat, a workflow outside the SDK's sandbox, the SDK's own
JSON converter, eager dispatch wide open (EAGER), the SDK's defaults for everything else. Server, tools and at most
IN_FLIGHT activities at once are the same. Values of any size are in the history. TEMPORAL_ADDRESS and BARE_QUEUE say
where it listens; with BARE_GZIP=off it does not compress its messages, as the SDK otherwise does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import GrpcCompression
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

EAGER = 100
IN_FLIGHT = 64
TIMEOUT = timedelta(hours=1)


@activity.defn
async def noop(args: dict[str, Any]) -> Any:
    """Return a number."""
    return args["number"]


@activity.defn
async def make_text(args: dict[str, Any]) -> Any:
    """Return a text of a given length."""
    head = f"{args.get('mark', 0):08d}"
    return head + "x" * (args["size"] - len(head))


@activity.defn
async def pass_text(args: dict[str, Any]) -> Any:
    """Return a text."""
    return args["text"]


@activity.defn
async def wait(args: dict[str, Any]) -> Any:
    """Sleep; return the time of day."""
    await asyncio.sleep(args["seconds"])
    return time.time()


@activity.defn
async def now(_: dict[str, Any]) -> Any:
    """Return the time of day."""
    return time.time()


@activity.defn
async def task(args: dict[str, Any]) -> Any:
    """Write `start STEP` into a ledger, sleep, write `end STEP`."""
    step, file = activity.info().activity_id, Path(args["workspace"], args["ledger"])
    ledger = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(ledger, f"start {step}\n".encode())
        await asyncio.sleep(args["seconds"])
        os.write(ledger, f"end {step}\n".encode())
    finally:
        os.close(ledger)
    return args["seconds"]


ACTIVITIES: list[Callable[..., Any]] = [noop, make_text, pass_text, wait, now, task]


@workflow.defn
class BareGraph:
    """Runs a graph: `steps` have `id`, `tool`, `args` and `needs`. Its result is the number of steps."""

    @workflow.run
    async def run(self, graph: dict[str, Any]) -> int:
        """Start what is ready, wait for what has finished, until all is done."""
        steps, done = graph["steps"], graph.setdefault("done", {})
        dependents: dict[str, list[dict[str, Any]]] = {step["id"]: [] for step in steps}
        open_: dict[str, int] = {}
        for step in steps:
            for name in step["needs"]:
                dependents[name].append(step)
            open_[step["id"]] = sum(name not in done for name in step["needs"])
        ready = deque(step for step in steps if step["id"] not in done and not open_[step["id"]])
        window = Window()
        while ready or window.in_flight:
            full = workflow.info().is_continue_as_new_suggested()
            if full and not window.in_flight:
                workflow.continue_as_new(graph)
            while ready and window.in_flight < IN_FLIGHT and not full:
                step = ready.popleft()
                window.start(step["id"], step["tool"], _filled(step["args"], graph, done))
            for name, value in await window.finished():
                done[name] = value
                for dependent in dependents[name]:
                    open_[dependent["id"]] -= 1
                    if not open_[dependent["id"]]:
                        ready.append(dependent)
        return len(done)


@workflow.defn
class BareLoop:
    """Calls `tool` for each of `items`, as its argument `name`. Its result is the number of values."""

    @workflow.run
    async def run(self, loop: dict[str, Any]) -> int:
        """Keep the window full until all are done."""
        values = loop.setdefault("values", {})
        left = deque(str(index) for index in range(len(loop["items"])) if str(index) not in values)
        window = Window()
        while left or window.in_flight:
            full = workflow.info().is_continue_as_new_suggested()
            if full and not window.in_flight:
                workflow.continue_as_new(loop)
            while left and window.in_flight < IN_FLIGHT and not full:
                index = left.popleft()
                window.start(index, loop["tool"], {loop["name"]: loop["items"][int(index)]})
            values.update(await window.finished())
        return len(values)


class Window:
    """The activities in flight."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._finished: deque[tuple[str, Any]] = deque()

    def start(self, name: str, tool: str, args: dict[str, Any]) -> None:
        """Start an activity."""
        handle = workflow.start_activity(tool, args, activity_id=name, start_to_close_timeout=TIMEOUT)
        handle.add_done_callback(lambda done: self._finished.append((name, done)))
        self.in_flight += 1

    async def finished(self) -> list[tuple[str, Any]]:
        """Names and values of those that have finished, at least one."""
        await workflow.wait_condition(lambda: bool(self._finished))
        found = [(name, handle.result()) for name, handle in self._finished]
        self._finished.clear()
        self.in_flight -= len(found)
        return found


@workflow.defn
class BareApprovals:
    """Runs each step of a graph when a signal names it. Its result is the value of each step."""

    def __init__(self) -> None:
        self._approved: deque[str] = deque()

    @workflow.signal
    def approve(self, message: dict[str, str]) -> None:
        """Let a step start."""
        self._approved.append(message["stepId"])

    @workflow.run
    async def run(self, graph: dict[str, Any]) -> dict[str, Any]:
        """Run each step when it is approved, one at a time."""
        steps, values = {step["id"]: step for step in graph["steps"]}, dict[str, Any]()
        while len(values) < len(steps):
            await workflow.wait_condition(lambda: bool(self._approved))
            step = steps[self._approved.popleft()]
            values[step["id"]] = await workflow.execute_activity(
                step["tool"], step["args"], activity_id=step["id"], start_to_close_timeout=TIMEOUT
            )
        return values


def _filled(args: dict[str, Any], graph: dict[str, Any], done: dict[str, Any]) -> dict[str, Any]:
    """The arguments with references filled in; a ledger is in the workspace."""
    found = {
        key: done[value[1:]] if isinstance(value, str) and value[:1] == "$" else value for key, value in args.items()
    }
    return found | ({"workspace": graph["workspace"]} if "ledger" in found else {})


async def serve() -> None:
    """Poll until SIGTERM."""
    gzip = GrpcCompression.NONE if os.environ.get("BARE_GZIP") == "off" else GrpcCompression.GZIP
    client = await Client.connect(os.environ["TEMPORAL_ADDRESS"], grpc_compression=gzip)
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with Worker(
        client,
        task_queue=os.environ["BARE_QUEUE"],
        workflows=[BareGraph, BareLoop, BareApprovals],
        activities=ACTIVITIES,
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_eager_activity_reservations_per_workflow_task=EAGER,
    ):
        await stopped.wait()


if __name__ == "__main__":
    asyncio.run(serve())
    sys.stdout.flush()
    os._exit(0)

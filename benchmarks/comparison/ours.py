"""A plan as a contender: the test stand's server with its data on disk, and one worker."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle

from benchmarks.comparison.contender import Cost, cpu_of, kill_trees
from benchmarks.graphs import Steps
from benchmarks.stand import APPROVALS, Kind, Stand
from plansurvive.client import runs as plans
from plansurvive.client.runs import Choice

ASKED: Steps = [{"id": "s0", "tool": "noop", "args": {"number": 1}, "requiresApproval": True}]
"""A plan that waits for an approval; by hand, a signal is awaited."""
STARTED = 4
"""Events in the history of a workflow once its first task has ended."""
AT_ONCE = 10
"""Runs that are started at the same time."""


class Plans:
    """Plans, or the bare workflow, on a Temporal server (`contender.Contender`)."""

    has_server = True

    def __init__(self, folder: Path, kind: Kind = "plan", *, repeatable: bool = True, **fields: Any) -> None:
        """`repeatable=False`: steps that must not be attempted twice.

        `fields`: of the plan, as `express=True`.
        """
        self.engine = {"plan": "a plan", "bare": "a workflow by hand, bare"}[kind]
        self.engine += "".join(f", `{name}`" for name in fields)
        self.engine += "" if repeatable else ", steps `repeatable: false`"
        self.state = "Temporal server, SQLite file, synchronous=full"
        self.kind, self.repeatable, self.fields = kind, repeatable, fields
        self.stand = Stand(folder / "stand", durable=True, kinds=(kind,))
        self._started: dict[str, WorkflowHandle[Any, Any]] = {}
        self._waiting: dict[str, list[WorkflowHandle[Any, Any]]] = {}

    async def start(self) -> None:
        """Start the stand."""
        await self.stand.__aenter__()

    async def stop(self) -> None:
        """Stop it."""
        await self.stand.__aexit__(None, None, None)

    @property
    def pids(self) -> list[int]:
        """The worker."""
        return [self.stand.worker(self.kind).pid]

    @property
    def server_pids(self) -> list[int]:
        """The Temporal server."""
        return [self.stand.server.pid]

    async def run(self, _name: str, workload: list[Steps], *, in_turn: bool = False) -> Cost:
        """Run graphs; the CPU is that of the worker, the server, and the client in this process."""
        pids = [*self.pids, *self.server_pids]
        before, own, began = cpu_of(pids), time.process_time(), time.perf_counter()
        for batch in [[steps] for steps in workload] if in_turn else [workload]:
            handles = await asyncio.gather(*(self.stand.start(self.kind, steps, **self.fields) for steps in batch))
            await asyncio.gather(*(handle.result() for handle in handles))
        wall = time.perf_counter() - began
        return Cost(wall=wall, cpu=cpu_of(pids) - before + time.process_time() - own)

    async def begin(self, name: str, steps: Steps) -> None:
        """Start a plan."""
        given = steps if self.repeatable else [{**step, "repeatable": False} for step in steps]
        self._started[name] = await self.stand.start(self.kind, given, **self.fields)

    async def kill(self, *, everything: bool) -> None:
        """Kill the worker, or the server with it."""
        pids = [*self.pids, *self.server_pids] if everything else self.pids
        kill_trees(pids)
        for pid in pids:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    async def restart(self, *, everything: bool) -> None:
        """Start the worker again, as `plan up` does; a server on the same data first."""
        if everything:
            await self.stand.restart_server()
        await self.stand.start_worker(self.kind)

    async def resume(self, name: str, steps: Steps) -> None:
        """Nothing: Temporal continues a plan as soon as a worker listens."""

    async def result(self, name: str, _steps: Steps) -> int:
        """Wait for the plan; the number of its completed steps. Raises RuntimeError with what the plan says."""
        try:
            found = await self._started[name].result()
        except WorkflowFailureError as error:
            raise RuntimeError(str(error.cause)) from error
        return int(found["counts"].get("completed", 0) if isinstance(found, dict) else found)

    def ledger(self, file: str) -> Path:
        """In the workspace."""
        return self.stand.workspace / file

    async def wait(self, name: str, runs: int) -> None:
        """Start plans that await an approval, or workflows that await a signal."""
        started: list[WorkflowHandle[Any, Any]] = []
        self._waiting[name] = started
        while count := min(AT_ONCE, runs - len(started)):
            start = (self.stand.start(self.kind, ASKED, by_hand=APPROVALS, **self.fields) for _ in range(count))
            batch = await asyncio.gather(*start)
            while not all(await asyncio.gather(*map(self._waits, batch))):
                await asyncio.sleep(0.1)
            started += batch

    async def answer(self, name: str, runs: int) -> None:
        """Approve the step of each, or send the signal."""
        await asyncio.gather(*map(self._approve, self._waiting[name][:runs]))

    async def ended(self, name: str, runs: int) -> int:
        """How many have completed."""
        found = await asyncio.gather(*(handle.describe() for handle in self._waiting[name][:runs]))
        return sum(each.status is WorkflowExecutionStatus.COMPLETED for each in found)

    async def _waits(self, handle: WorkflowHandle[Any, Any]) -> bool:
        if self.kind == "plan":
            return bool((await plans.show(self.stand.client, handle.id)).steps[0].awaiting)
        return (await handle.describe()).history_length >= STARTED

    async def _approve(self, handle: WorkflowHandle[Any, Any]) -> None:
        if self.kind == "plan":
            await plans.approve(self.stand.client, handle.id, Choice(step_id="s0"))
        else:
            await handle.signal("approve", {"stepId": "s0"})

"""A plan as a contender: the test stand's server with its data on disk, and one worker."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHandle

from benchmarks.comparison.contender import Cost, cpu_of, kill_trees
from benchmarks.graphs import Steps
from benchmarks.stand import Kind, Stand


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

    async def start(self) -> None:
        """Start the stand."""
        await self.stand.__aenter__()

    async def stop(self) -> None:
        """Stop it."""
        await self.stand.__aexit__(None, None, None)

    async def run(self, _name: str, workload: list[Steps]) -> Cost:
        """Run graphs at the same time; the CPU is that of the worker, the server, and the client in this process."""
        before, own, began = cpu_of(self._pids), time.process_time(), time.perf_counter()
        handles = await asyncio.gather(*(self.stand.start(self.kind, steps, **self.fields) for steps in workload))
        await asyncio.gather(*(handle.result() for handle in handles))
        wall = time.perf_counter() - began
        return Cost(wall=wall, cpu=cpu_of(self._pids) - before + time.process_time() - own)

    async def begin(self, name: str, steps: Steps) -> None:
        """Start a plan."""
        given = steps if self.repeatable else [{**step, "repeatable": False} for step in steps]
        self._started[name] = await self.stand.start(self.kind, given, **self.fields)

    async def kill(self, *, everything: bool) -> None:
        """Kill the worker, or the server with it."""
        pids = self._pids if everything else self._pids[:1]
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

    @property
    def _pids(self) -> list[int]:
        return [self.stand.worker(self.kind).pid, self.stand.server.pid]

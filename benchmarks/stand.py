"""The test stand: its own server, started as `plan` starts it, and one worker process per kind of workflow.

Kinds: `plan`; `minimal`, a workflow by hand on our worker with our activities; `bare`, one with nothing of ours;
`uncompressed`, the same without the gzip of the SDK.

    async with Stand(folder, durable=True) as stand:
        sample = await stand.run("plan", [graphs.chain(200)])

`durable`: the server's data is on disk, as for users. Otherwise it is in memory, which is faster, so our own share of
the time is larger. `variables`: further settings of the workers.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self

from temporalio.client import Client, WorkflowHandle
from temporalio.service import GrpcCompression

from benchmarks.graphs import Steps
from benchmarks.history import Size, size_of
from benchmarks.minimal import Graph, GraphStep
from benchmarks.processes import Watched
from benchmarks.sample import Sample
from plansurvive.client.verbs import start as starting
from plansurvive.plans.run import Options
from plansurvive.runtime import daemon
from plansurvive.runtime.connect import connect, healthy
from plansurvive.runtime.server import HOST, Server, flags, free_ports
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.runtime.temporal_binary import find_temporal

Kind = Literal["plan", "minimal", "bare", "uncompressed"]
KINDS: tuple[Kind, ...] = ("plan", "minimal", "bare")
BARE: tuple[Kind, ...] = ("bare", "uncompressed")
BY_HAND: dict[Kind, str] = {"minimal": "MinimalWorkflow", "bare": "BareGraph", "uncompressed": "BareGraph"}
APPROVALS: dict[Kind, str] = {"minimal": "MinimalApprovals", "bare": "BareApprovals"}
ROOT = Path(__file__).parent.parent
PATIENCE = 60.0


class Stand:
    """A server and a worker of each kind in a folder; stopped at the end of the `async with`."""

    client: Client
    plain: Client
    """One with the SDK's own converter, for the bare yardstick."""
    uncompressed: Client
    """The same without gzip."""
    server: Server

    server_flags: Sequence[str] = ()
    """Further flags of the server, and variables of its environment."""
    server_variables: Mapping[str, str] = MappingProxyType({})
    max_parallel: int | None = None
    """Steps of a plan in flight at once; None: the default."""

    def __init__(
        self,
        folder: Path,
        *,
        durable: bool,
        variables: Mapping[str, str] | None = None,
        kinds: Sequence[Kind] = KINDS,
    ) -> None:
        self.folder, self.durable, self.variables, self.kinds = folder, durable, variables or {}, kinds
        self.workspace = folder / "workspace"
        self._workers: dict[Kind, daemon.Process] = {}

    async def __aenter__(self) -> Self:
        self.workspace.mkdir(parents=True)
        try:
            await self._start_server()
            self.client = await connect(self.settings(self.kinds[0]))
            self.plain = await Client.connect(self.server.address)
            self.uncompressed = await Client.connect(self.server.address, grpc_compression=GrpcCompression.NONE)
            for kind in self.kinds:
                await self.start_worker(kind)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    def worker(self, kind: Kind) -> Watched:
        """The worker process of this kind."""
        return Watched(self._workers[kind].pid)

    def environ(self, kind: Kind) -> dict[str, str]:
        """The environment of a command or worker on this stand."""
        inherited = {name: os.environ[name] for name in ("HOME", "PATH", "LANG", "GOPATH") if name in os.environ}
        return inherited | {
            "TEMPORAL_ADDRESS": self.server.address,
            "PLANS_TASK_QUEUE": f"bench-{kind}",
            "BARE_QUEUE": f"bench-{kind}",
            "BARE_GZIP": "off" if kind == "uncompressed" else "on",
            "PLANS_STATE_DIR": str(self.folder / "state"),
            "PLANS_WORKSPACE": str(self.workspace),
            "PLANS_TOOLS": "benchmarks.tools",
            "PLANS_AUTO_WORKER": "off",
            "PLANS_OUTPUT_MB": "2048",
            "PYTHONPATH": str(ROOT),
            **self.variables,
        }

    def settings(self, kind: Kind) -> Settings:
        """The settings of that environment."""
        return Settings.read(self.environ(kind))

    def bare_client(self, kind: Kind) -> Client:
        """The client for a bare kind."""
        return self.uncompressed if kind == "uncompressed" else self.plain

    async def start_worker(self, kind: Kind) -> None:
        """Start a worker and wait until it polls."""
        log = self.folder / f"worker-{kind}.log"
        command = [sys.executable, "-m", *(["benchmarks.bare"] if kind in BARE else ["benchmarks.serve", kind])]
        pid, began = daemon.start(command, log, self.environ(kind))
        self._workers[kind] = daemon.Process(pid=pid, began=began)
        async with asyncio.timeout(PATIENCE):
            while not await listeners(self.client, f"bench-{kind}"):
                if not self._workers[kind].is_alive():
                    raise RuntimeError(f"the worker exited at startup: {daemon.tail(log)}")
                await asyncio.sleep(0.05)

    async def stop_worker(self, kind: Kind) -> None:
        """Stop a worker."""
        await self._workers.pop(kind).stop(10.0)

    async def start(
        self, kind: Kind, steps: Steps, *, waves: bool = False, by_hand: Mapping[Kind, str] = BY_HAND, **fields: Any
    ) -> WorkflowHandle[Any, Any]:
        """Start a plan, or a workflow by hand with the same graph; `by_hand` names it, `waves` is for `minimal`.

        `fields`: of the plan.
        """
        name, queue = f"bench-{uuid.uuid4().hex[:12]}", f"bench-{kind}"
        if kind == "plan":
            options = Options(workspace=str(self.workspace), max_parallel=self.max_parallel)
            plan = {"title": "benchmark", "steps": steps, **fields}
            started = await starting.start(self.client, plan, options=options, plan_id=name, queue=queue)
            return self.client.get_workflow_handle(started.workflow_id, run_id=started.run_id)
        graph = Graph(workspace=str(self.workspace), steps=[_by_hand(step) for step in steps], waves=waves)
        if kind in BARE:
            plain = graph.model_dump(include={"workspace", "steps"})
            client = self.bare_client(kind)
            handle = await client.start_workflow(by_hand[kind], plain, id=name, task_queue=queue)
            return client.get_workflow_handle(name, run_id=handle.first_execution_run_id)
        handle = await self.client.start_workflow(by_hand[kind], graph, id=name, task_queue=queue)
        return self.client.get_workflow_handle(name, run_id=handle.first_execution_run_id)

    async def run(self, kind: Kind, graphs: list[Steps], **fields: Any) -> Sample:
        """Run graphs concurrently, one workflow each; returns the measurements. `fields`: of plans."""
        worker, server = self.worker(kind), Watched(self.server.pid)
        worker.forget_peak()
        worker_cpu, server_cpu, began = worker.cpu, server.cpu, time.perf_counter()
        handles = await asyncio.gather(*(self.start(kind, steps, **fields) for steps in graphs))
        await asyncio.gather(*(handle.result() for handle in handles))
        seconds = time.perf_counter() - began
        worker_cpu, server_cpu = worker.cpu - worker_cpu, server.cpu - server_cpu
        sizes: list[Size] = [size for handle in handles for size in await size_of(self.client, handle)]
        return Sample(
            steps=sum(map(len, graphs)),
            seconds=seconds,
            worker_cpu=worker_cpu,
            server_cpu=server_cpu,
            peak_memory=worker.peak_memory,
            events=sum(size.events for size in sizes),
            longest_run=max(size.events for size in sizes),
            history_bytes=sum(size.bytes for size in sizes),
            runs=len(sizes),
        )

    async def restart_server(self) -> None:
        """Start the server again on its data and its port, after it was killed."""
        await self._start_server(*self.server.ports)
        await healthy(PATIENCE, target_host=self.server.address)  # it listens before it answers

    async def _start_server(self, *ports: int) -> None:
        temporal = await find_temporal(Settings.read({"HOME": os.environ.get("HOME", "")}), print)
        port, ui_port = ports or free_ports(0, 0)
        database = self.folder / "temporal.db" if self.durable else None
        pid, began = daemon.start(
            [str(temporal), *flags(port, ui_port, database), *self.server_flags],
            self.folder / "server.log",
            {**os.environ, **self.server_variables},
        )
        self.server = Server(pid=pid, began=began, address=f"{HOST}:{port}", ui=f"http://{HOST}:{ui_port}")
        async with asyncio.timeout(PATIENCE):
            while not self.server.accepts():
                if not self.server.is_alive():
                    raise RuntimeError(f"the server exited at startup: {daemon.tail(self.folder / 'server.log')}")
                await asyncio.sleep(0.05)

    async def _stop(self) -> None:
        for worker in self._workers.values():
            await worker.stop(10.0)
        if hasattr(self, "server"):
            await self.server.stop(5.0)


def _by_hand(step: dict[str, Any]) -> GraphStep:
    """A plan's step for the minimal workflow, which does not derive dependencies from references."""
    args = step.get("args", {})
    used = [value[1:] for value in args.values() if isinstance(value, str) and value.startswith("$")]
    return GraphStep(id=step["id"], tool=step["tool"], args=args, needs=[*step.get("dependsOn", []), *used])

"""What telemetry costs a worker: two workers side by side, one with traces, metrics and logs on, run the same plans.

In turn, on one server; CPU time of the worker processes. The collector is a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from collections.abc import Mapping
from typing import Any

from temporalio.client import Client

from benchmarks import graphs
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.processes import Watched
from benchmarks.stand import ROOT, Stand
from benchmarks.tables import Table
from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.client.verbs import start as starting
from plansurvive.features.telemetry.instruments import free_address
from plansurvive.plans.run import Options
from plansurvive.runtime import daemon
from plansurvive.runtime.task_queues import listeners
from tests.kit.collector import collector
from tests.kit.waiting import until
from tests.workflows.agents import says

BAR = 0.05
"""Share of a worker's CPU time that telemetry may cost with steps that do something."""
PLANS = 8


def commands(count: int) -> Steps:
    """Steps that each start a command."""
    return [{"id": f"c{number}", "tool": "run_command", "args": {"command": "true"}} for number in range(count)]


def agents(count: int) -> Steps:
    """Steps that each are an agent, which answers at once."""
    return [{"id": f"a{number}", "tool": "agent", "args": {"objective": "Say done."}} for number in range(count)]


def files(count: int) -> Steps:
    """Steps that each write a file of their own."""
    return [
        {"id": f"f{number}", "tool": "write_file", "args": {"path": f"out/{number}.txt", "content": "x" * 1_000}}
        for number in range(count)
    ]


async def measure(bench: Bench) -> list[Table]:
    """Measure plans of commands, of files and of steps that do nothing, with and without telemetry."""
    count, rounds = (20, 2) if bench.quick else (100, max(bench.repeats, 5))
    cases = {
        f"{count} commands": (commands(count), True),
        f"{count // 5} agents": (agents(count // 5), True),
        f"{count} small files": (files(count), None),
        f"{2 * count} steps that do nothing": (graphs.fan_out(2 * count), None),
    }
    table = Table(
        title="Telemetry",
        columns=["plan", "off", "on", "more", "spans"],
        note=f"CPU time of a worker and its commands per step, traces, metrics and JSON logs off and on; median of"
        f" {rounds} rounds in turn, {PLANS} plans at once each. Bar: {BAR:.0%} more for a command or an agent.",
    )
    async with bench.stand() as stand:
        for name, (steps, has_bar) in cases.items():
            with ScriptedLlm(Script.of([says({"answer": "done", "confidence": "high"}, times=0)])) as llm:
                off, on, spans = await _compared(stand, steps, rounds, llm.url)
            more = on / off - 1
            each = 1_000 / (PLANS * len(steps))
            table.add(
                name, f"{off * each:.2f} ms", f"{on * each:.2f} ms", f"{more:+.1%}", f"{spans:,}",
                reached=more <= BAR if has_bar else None,
            )  # fmt: skip
            bench.say(f"{name}: {more:+.1%}")
    return [table]


async def _compared(stand: Stand, steps: Steps, rounds: int, llm: str) -> tuple[float, float, int]:
    """CPU seconds of one round off and on, and the number of spans of all rounds."""
    with collector() as sink:
        asks = {"OPENAI_BASE_URL": llm, "PLANS_MODEL": "scripted"}
        telemetry = {
            "PLANS_OTEL": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": sink.url, "PLANS_METRICS": free_address(),
            "PLANS_LOG": "json",
        }  # fmt: skip
        workers = {
            "off": await _worker(stand, "telemetry-off", asks),
            "on": await _worker(stand, "telemetry-on", asks | telemetry),
        }
        used: dict[str, list[float]] = {"off": [], "on": []}
        try:
            for number in range(rounds + 1):
                for name, worker in sorted(workers.items(), reverse=number % 2 == 0):
                    before = Watched(worker.pid).cpu_of_all
                    await _run(stand.client, f"telemetry-{name}", steps, str(stand.workspace))
                    if number:  # the first round warms up
                        used[name].append(Watched(worker.pid).cpu_of_all - before)
        finally:
            for worker in workers.values():
                await worker.stop(10.0)
        return statistics.median(used["off"]), statistics.median(used["on"]), len(sink.spans)


async def _worker(stand: Stand, queue: str, more: Mapping[str, str]) -> daemon.Process:
    environ = stand.environ("plan") | {"PLANS_TASK_QUEUE": queue} | dict(more)
    log = stand.folder / f"{queue}.log"
    pid, began = daemon.start([sys.executable, str(ROOT / "worker.py")], log, os.environ | environ)
    await until(lambda: listeners(stand.client, queue), "the worker polls")
    return daemon.Process(pid=pid, began=began)


async def _run(client: Client, queue: str, steps: Steps, workspace: str) -> None:
    async def one() -> Any:
        options = Options(workspace=workspace, approve_all=True)
        plan = {"title": "benchmark", "steps": steps}
        started = await starting.start(client, plan, options=options, queue=queue)
        return await client.get_workflow_handle(started.workflow_id, run_id=started.run_id).result()

    await asyncio.gather(*(one() for _ in range(PLANS)))

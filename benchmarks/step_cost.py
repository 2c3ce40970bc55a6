"""What a step costs a worker in CPU time, by part: deciding, in the workflow's thread, and an attempt of its tool.

Each part is measured alone and in this process, as CPU time of its thread, of which the shortest counts: other work on
the machine matters little. The number of calls of functions, those of C included, is the same on any machine. Deciding:
the activations of a real run are recorded and carried out again. What is not here, the SDK's own event loop and its
Rust core, is in the worker CPU of the other tables.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, NamedTuple

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.testing import ActivityEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowInstance, WorkflowInstanceDetails

from benchmarks import bare, graphs, tools
from benchmarks.bench import Bench
from benchmarks.graphs import Steps
from benchmarks.serve import WORKFLOWS
from benchmarks.stand import KINDS, Kind, Stand
from benchmarks.tables import Table
from plansurvive.activities.attempt.environment import environment_of
from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.feature import Layer
from plansurvive.activities.lifecycle.offered import offered
from plansurvive.activities.tools.registry import load_tools
from plansurvive.activities.tools.tool import no_fault
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.features.worker_features import features_of_worker
from plansurvive.plans.activity_io import Call
from plansurvive.plans.model import Retry
from plansurvive.plans.model.parts import Part
from plansurvive.plans.run import gc_disabled
from plansurvive.runtime.task_queues import Neighbours
from plansurvive.runtime.value_store import ValueStore
from plansurvive.runtime.workflow_runner import runner_for

TIMES, CALLS = 7, 300
"""How often a part is repeated, and calls of a tool in each of these."""


class Cost(NamedTuple):
    """CPU time, and calls of functions."""

    milliseconds: float
    calls: float


@dataclass
class Calls:
    """Counts the calls of functions, while it is what `sys.setprofile` has."""

    number: int = 0

    def __call__(self, _: FrameType, event: str, __: Any) -> None:
        """Count an event of the interpreter."""
        self.number += event in ("call", "c_call")


class Decided(NamedTuple):
    """One run of a workflow."""

    details: WorkflowInstanceDetails
    activations: list[bytes]


@dataclass(frozen=True)
class Recording(UnsandboxedWorkflowRunner):
    """Runs workflows as `inner` does, and records what they are given to decide."""

    inner: UnsandboxedWorkflowRunner
    runs: dict[str, Decided] = field(default_factory=dict)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        """Create a workflow instance whose activations are recorded."""
        instance, run = self.inner.create_instance(det), Decided(det, [])
        self.runs[det.info.run_id] = run
        activate = instance.activate

        def recorded(act: WorkflowActivation) -> Any:
            if not act.jobs[0].HasField("remove_from_cache"):
                run.activations.append(act.SerializeToString())
            return activate(act)

        vars(instance)["activate"] = recorded
        return instance


async def measure(bench: Bench) -> list[Table]:
    """Measure each part of a step, each way."""
    table = Table(
        title="What a step costs",
        columns=["part", "plan ms", "by hand ms", "bare ms", "plan calls", "by hand calls", "bare calls"],
        note="CPU time of a worker per step, each part measured alone, and the calls of functions in it. Deciding: the"
        " thread of the workflow.",
    )
    small = 10 if bench.quick else 1
    shapes: dict[str, Steps] = {
        "a chain of 200": graphs.chain(200 // small),
        "a fan-out of 200": graphs.fan_out(200 // small),
        "layers of 50": graphs.layered(1_000 // small),
        "references of 10 KB": graphs.references(200 // small, 10_000),
        "a plan of 20": graphs.chain(20),
    }
    async with bench.stand() as stand:
        for name, steps in shapes.items():
            bench.say(name)
            _add(table, f"deciding, {name}", [await deciding(stand, kind, steps) for kind in KINDS])
        for name, text in (("does nothing", ""), ("takes and gives 10 KB", "x" * 10_000)):
            ours, theirs = await attempt(stand, text), await _bare_attempt(stand.plain.data_converter, text)
            _add(table, f"an attempt of a tool that {name}", [ours, ours, theirs])
    return [table]


def _add(table: Table, name: str, costs: list[Cost]) -> None:
    table.add(name, *[f"{each.milliseconds:.3f}" for each in costs], *[f"{each.calls:.0f}" for each in costs])


async def deciding(stand: Stand, kind: Kind, steps: Steps) -> Cost:
    """The cost of a step in the thread of the workflow."""
    await stand.stop_worker(kind)
    client, settings = stand.plain if kind == "bare" else stand.client, stand.settings(kind)
    plain = UnsandboxedWorkflowRunner()
    recording = Recording(plain if kind == "bare" else runner_for(client, Neighbours()))
    given: list[type] = [bare.BareGraph] if kind == "bare" else WORKFLOWS[kind]
    features = features_of_worker(client, settings)
    own = offered(client, settings, load_tools(settings.tools), True, no_fault, features)
    async with _worker(client, settings.task_queue, given, bare.ACTIVITIES if kind == "bare" else own, recording):
        handle = await stand.start(kind, steps)
        await handle.result()
    await stand.start_worker(kind)
    (run,) = [run for run in recording.runs.values() if run.details.info.workflow_id == handle.id]
    spent = [await _again(recording.inner, run) for _ in range(TIMES)]
    shortest: list[float] = [min(each) for each in zip(*spent, strict=True)]
    calls = Calls()
    await _again(recording.inner, run, calls)
    return Cost(1_000 * sum(shortest) / len(steps), calls.number / len(steps))


def _worker(client: Client, queue: str, given: list[type], own: list[Callable[..., Any]], runner: Recording) -> Worker:
    return Worker(
        client,
        task_queue=queue,
        workflows=given,
        activities=own,
        activity_executor=ThreadPoolExecutor(16),
        workflow_runner=runner,
        max_eager_activity_reservations_per_workflow_task=bare.EAGER,
    )


async def _again(runner: UnsandboxedWorkflowRunner, run: Decided, calls: Calls | None = None) -> list[float]:
    """The CPU seconds of each activation, carried out again; the first includes the creation of the instance.

    `calls`: counts them, which takes its time.
    """
    gc.collect()
    began = time.thread_time()
    instance = runner.create_instance(run.details)
    created = time.thread_time() - began

    def decide() -> list[float]:
        seconds = []
        for data in run.activations:
            act, began = WorkflowActivation.FromString(data), time.thread_time()
            sys.setprofile(calls)
            done = instance.activate(act)
            sys.setprofile(None)
            if done.HasField("failed"):
                raise RuntimeError("a recorded run was decided differently")
            seconds.append(time.thread_time() - began)
        return seconds

    with gc_disabled():
        first, *rest = await asyncio.to_thread(decide)
    return [created + first, *rest]


async def attempt(stand: Stand, text: str, layers: Sequence[Layer] = (), *parts: Part) -> Cost:
    """The cost of an attempt in the event loop: its arguments decoded, its tool called, its value encoded.

    `layers`: of features around it; `parts`: what the call says to them.
    """
    settings, converter = stand.settings("plan"), stand.client.data_converter
    external = converter.external_storage
    if external is None:
        raise RuntimeError("the stand has no storage for large values")
    values, effects = ValueStore(external.drivers[0]), Effects.of(settings)
    large = {"before": await values.put(f'"{text}"')} if text else {}
    site = replace(environment_of(settings, effects), layers=list(layers))
    call_tool = tool_activity(tools.pass_text if text else tools.noop, values, effects, site)
    call = Call(
        args={"text": "$before"} if text else {"number": 1}, plan_id="p", step_id="s", key="p/s",
        workspace=str(stand.workspace), timeout=60.0, retry=Retry(), large=large, deferred=[["text"]] if text else [],
        parts={part.feature: part for part in parts},
    )  # fmt: skip
    (payload,) = await converter.encode([call])

    async def once() -> None:
        (given,) = await converter.decode([payload], [Call])
        await converter.encode([await call_tool(given)])

    return await _shortest(once)


async def _bare_attempt(converter: DataConverter, text: str) -> Cost:
    call = bare.pass_text if text else bare.noop
    (payload,) = await converter.encode([{"text": text} if text else {"number": 1}])

    async def once() -> None:
        (given,) = await converter.decode([payload], [dict[str, Any]])
        await converter.encode([await call(given)])

    return await _shortest(once)


async def _shortest(once: Callable[[], Awaitable[None]]) -> Cost:
    async def calls() -> float:
        began = time.thread_time()
        for _ in range(CALLS):
            await once()
        return time.thread_time() - began

    spent = [await ActivityEnvironment().run(calls) for _ in range(TIMES)]
    counted = Calls()

    async def count() -> None:
        sys.setprofile(counted)
        await once()
        sys.setprofile(None)

    await ActivityEnvironment().run(count)
    return Cost(1_000 * min(spent) / CALLS, counted.number)

"""Prefect with a server of its own (PREFECT_API_URL): a task for each step, results stored on disk.

A flow that waits for a person is suspended, as the documentation says for long waits: it has a deployment, and a
runner in this process, as `flow.serve` starts it, takes it up again when it is resumed, in a process of its own.
Argument: folder.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from prefect import aresume_flow_run, flow, get_client, task  # type: ignore[import-not-found]
from prefect.client.schemas.filters import (  # type: ignore[import-not-found]
    FlowRunFilter,
    FlowRunFilterName,
)
from prefect.exceptions import Pause  # type: ignore[import-not-found]
from prefect.flow_engine import run_flow  # type: ignore[import-not-found]
from prefect.flows import EntrypointType  # type: ignore[import-not-found]
from prefect.runner import Runner  # type: ignore[import-not-found]
from prefect.states import Crashed, Pending, Scheduled  # type: ignore[import-not-found]
from prefect.task_runners import ThreadPoolTaskRunner  # type: ignore[import-not-found]

from benchmarks.others.prefect_asking import asks
from benchmarks.others.serving import Engine, Steps, Waits, call_of, perform_in_thread, serve

FOLDER = Path(sys.argv[1])
step_function = task(perform_in_thread)
threads = ThreadPoolExecutor(64)
"""Flows and tasks are synchronous."""


def _graph(file: str) -> int:
    """The steps are in a file: the server limits the size of a flow's parameters."""
    futures: dict[str, Any] = {}
    for step in json.loads(Path(file).read_text()):
        needs = [futures[name] for name in step["dependsOn"]]
        futures[step["id"]] = step_function.submit(call_of(step), wait_for=needs)
    return len([future.result() for future in futures.values()])


graph = flow(_graph, task_runner=ThreadPoolTaskRunner(max_workers=64))


async def run(steps: Steps, name: str) -> int:
    """Run a graph as one flow."""
    file = FOLDER / f"{name}.json"
    file.write_text(json.dumps(steps))
    named = graph.with_options(flow_run_name=name)
    return int(await asyncio.get_running_loop().run_in_executor(threads, named, str(file)))


async def resume(_: Steps, name: str) -> None:
    """What the UI or an automation does to a flow run that is no more, then what `prefect flow-run retry` does."""
    async with get_client() as client:
        found = await _found(client, name)
        for state in (Crashed(message="its process was killed"), Scheduled(message="Retried")):
            await client.set_flow_run_state(found.id, state, force=True)
        found = await client.read_flow_run(found.id)
    again = partial(run_flow, graph, flow_run=found, parameters=found.parameters, return_type="state")
    await asyncio.get_running_loop().run_in_executor(threads, again)


async def result(_: Steps, name: str) -> int:
    """Wait until the flow run has ended; its value is the number of steps."""
    async with get_client() as client:
        while not (found := await _found(client, name)).state.is_final():
            await asyncio.sleep(0.2)
        return int(await found.state.result())


async def _found(client: Any, name: str) -> Any:
    named = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
    (found,) = await client.read_flow_runs(flow_run_filter=named)
    return found


class Served:
    """The deployment of the flow that waits, and its runner: both begin with the first request for them."""

    def __init__(self) -> None:
        self._started: asyncio.Task[Any] | None = None

    async def deployment(self) -> Any:
        """Its id, with a runner that listens."""
        if self._started is None:
            self._started = asyncio.create_task(self._start())
        return await self._started

    async def _start(self) -> Any:
        runner = Runner(name="bench")
        deployment = await runner.aadd_flow(asks, name="bench", entrypoint_type=EntrypointType.MODULE_PATH)
        self._runs = asyncio.create_task(runner.start())
        return deployment


served = Served()


async def wait(name: str) -> None:
    """Run the flow in this process until it is suspended."""
    deployment = await served.deployment()
    async with get_client() as client:
        found = await client.create_flow_run_from_deployment(deployment, name=name, state=Pending())
    await asyncio.get_running_loop().run_in_executor(threads, _until_suspended, found)


def _until_suspended(found: Any) -> None:
    with suppress(Pause):
        run_flow(asks, flow_run=found, return_type="state")


async def answer(name: str) -> None:
    """What the form of the UI does."""
    await served.deployment()
    async with get_client() as client:
        found = await _found(client, name)
    await aresume_flow_run(found.id, run_input={"value": 1})


async def ended(name: str) -> bool:
    """Whether the flow run has completed."""
    async with get_client() as client:
        return bool((await _found(client, name)).state.is_completed())


if __name__ == "__main__":  # not in the processes that the runner starts
    asyncio.run(serve(Engine("prefect", run, resume, result, Waits(wait, answer, ended))))

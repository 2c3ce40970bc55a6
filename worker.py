"""The worker, and composition root: wires settings, tools, activities and workflows into a Temporal worker.

`python worker.py` (or `plan worker`) polls until SIGTERM or SIGINT. Running steps then have PLANS_GRACE seconds to
finish before they are cancelled and retried elsewhere; a second signal exits at once. Exit codes: 0 stopped, 1 other
error, 2 bad setting, 3 no server.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from activities.mcp.of_settings import tool_servers
from activities.mcp.server_tools import ServerTools, of_servers
from activities.offered import make_storage, offered
from activities.tools.registry import load_tools
from activities.tools.tool import Tool, no_fault
from plans.errors import PlanError
from runtime import gc_tuning, namespaces, search_attributes
from runtime.connect import Connection, reach
from runtime.errors import NotConnected
from runtime.service.presence import Presence
from runtime.service.stop_signals import stop_on_signals, stop_with_parent
from runtime.service.worker_arguments import parser
from runtime.settings import Settings
from runtime.task_queues import WORKER, Neighbours
from runtime.versions.joining import joined, next_step
from runtime.versions.version import deployment_of
from runtime.worker_pool import Processes
from runtime.workflow_runner import passed_through, runner_for, stores_here, with_patience
from workflows.agent import AgentWorkflow
from workflows.file_changes import ChangesWorkflow
from workflows.notify.notifier import NotifyWorkflow
from workflows.plan import PlanWorkflow

WORKFLOWS: tuple[type, ...] = (ChangesWorkflow, PlanWorkflow, AgentWorkflow, NotifyWorkflow)
PASSED_THROUGH = passed_through(WORKFLOWS)
STICKY = timedelta(seconds=2)
"""How long a plan's workflow task waits for the worker that has it cached, before any other worker takes it."""
BEAT = timedelta(seconds=1)
"""Longest interval between heartbeats to the server, and so the delay until a step notices its cancellation."""
CACHED_WORKFLOWS = 1_000


def build(
    client: Client,
    settings: Settings,
    tools: Mapping[str, Tool],
    *,
    indexed: bool,
    cached: int = CACHED_WORKFLOWS,
    workflows: Sequence[type] = WORKFLOWS,
    fault: Callable[[str], None] = no_fault,
    servers: ServerTools | None = None,
    neighbours: Neighbours | None = None,
) -> Worker:
    """Build a worker for the settings' task queue; does not start it.

    `indexed`: our custom search attributes are registered on the server. `cached`: number of workflows kept in memory;
    others are replayed from history on their next task. `fault` is called at the points of a tool where a crash of the
    worker matters; tests crash it there. `servers`: what the tool servers of mcp.toml offer. `neighbours` says whether
    others poll the queue, and has the version of the code of this worker; without it others may, and there is none.
    """
    beside = neighbours or Neighbours()
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        identity=identity(),
        deployment_config=deployment_of(beside.version),
        workflows=workflows,
        activities=offered(client, settings, tools, indexed, fault, servers),
        workflow_runner=runner_for(client, WORKFLOWS, beside),
        activity_executor=ThreadPoolExecutor(settings.max_activities + 2, thread_name_prefix="step"),
        max_concurrent_activities=settings.max_activities,
        max_eager_activity_reservations_per_workflow_task=settings.max_activities,
        max_heartbeat_throttle_interval=BEAT,
        max_cached_workflows=cached,
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(),
        sticky_queue_schedule_to_start_timeout=STICKY,
        graceful_shutdown_timeout=timedelta(seconds=settings.grace),
        max_workflow_task_external_storage_concurrency=1 if stores_here(client) else 3,
    )
    return with_patience(worker)


def identity() -> str:
    """What this worker is called among those of its queue."""
    return f"{WORKER}{os.getpid()}@{socket.gethostname()}"


async def serve(
    settings: Settings,
    child: int | None = None,
    patience: float | None = None,
    fault: Callable[[str], None] = no_fault,
) -> None:
    """Poll until stopped. Raises PlanError without a server or with a bad setting.

    `child`: number of this process in a pool; it also stops when its standard input closes. `patience`: of a background
    worker, the seconds its server may be away before it ends by itself. `fault`: see `build`.
    """
    settings.make_state_dir()
    tools, connection = load_tools(settings.tools), await reach(settings, _say)
    make_storage(connection.client, settings)
    indexed = await search_attributes.ensure(connection.client) >= search_attributes.TOLD
    await namespaces.remember(settings, connection.client, connection.address)
    stopped = stop_on_signals()
    if child is not None:
        stop_with_parent(stopped)
    # Synchronous tools run in this executor: one thread for each concurrent step, and some for file access.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(settings.max_activities + 8))
    neighbours = Neighbours(await joined(settings, connection.client))
    collector = asyncio.create_task(gc_tuning.keep_small())
    looking = asyncio.create_task(neighbours.keep_looking(connection.client, settings.task_queue, identity()))
    async with AsyncExitStack() as workers:
        servers = await workers.enter_async_context(tool_servers(settings, connection.address))  # first: they end last
        served = await of_servers(servers, settings, tools, _say)
        running = _workers(connection.client, settings, tools, indexed, fault, served, neighbours)
        for each in running:
            await workers.enter_async_context(each)
        looks = Presence(settings.state_dir, connection.client, patience, _say)
        presence = asyncio.create_task(looks.keep(running, stopped))
        greeting = _greeting(connection, settings, [*tools, *(served.specs if served else ())])
        _say(("" if child is None else f"Worker {child}: ") + greeting)
        await next_step(connection.client, settings, neighbours.version, _say)
        await stopped.wait()
        _say(f"Stopping: running steps have {settings.grace:g} s to finish.")
    for task in (presence, looking, collector):
        task.cancel()
    _say("Stopped.")


def _workers(
    client: Client, settings: Settings, tools: Mapping[str, Tool], indexed: bool, fault: Callable[[str], None],
    served: ServerTools | None, neighbours: Neighbours,
) -> list[Worker]:  # fmt: skip
    """The worker of the settings' queue, and one for the steps of each further queue."""
    bound = [settings.with_flags(task_queue=queue) for queue in settings.queues]
    make = functools.partial(
        build, client, tools=tools, indexed=indexed, fault=fault, servers=served, neighbours=neighbours
    )
    return [make(settings), *(make(each, workflows=()) for each in bound)]


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a worker with command-line arguments and an environment; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    flags = vars(parser().parse_args(arguments))
    try:
        address, processes, child, patience = (flags.pop(n) for n in ("address", "processes", "child", "patience"))
        environ = {**environ, "TEMPORAL_ADDRESS": address} if address else environ
        settings = Settings.read(environ).with_flags(**flags)
        if processes > 1 and child is None:
            return asyncio.run(_serve_in(processes, arguments))
        gc_tuning.share_arenas()
        asyncio.run(serve(settings, child, patience))
    except PlanError as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        return 3 if isinstance(error, NotConnected) else 2 if error.code.startswith("BAD_SETTING") else 1
    return 0


def main() -> None:
    """Entry point. Exits with `os._exit`: the SDK's threads may crash during interpreter shutdown."""
    try:
        code = run(sys.argv[1:], os.environ)
    except Exception:
        traceback.print_exc()
        code = 1
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _serve_in(processes: int, arguments: Sequence[str]) -> int:
    command = [sys.executable, os.path.realpath(__file__), *arguments]
    return await Processes(command, processes, _say).run()


def _greeting(connection: Connection, settings: Settings, tools: Sequence[str]) -> str:
    return (
        f"Listening to {_queues(settings)} in namespace '{connection.client.namespace}' at "
        f"{connection.address}; workspace {settings.workspace or 'set by each plan'}; {len(tools)} tools."
    )


def _queues(settings: Settings) -> str:
    names = [f"'{name}'" for name in (settings.task_queue, *settings.queues)]
    return f"queue{'s' * (len(names) > 1)} {', '.join(names)}"


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()

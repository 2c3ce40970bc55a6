"""The worker, and composition root: wires settings, tools, activities and workflows into a Temporal worker.

`python worker.py` (or `plan worker`) polls until SIGTERM or SIGINT. Running steps then have PLANS_GRACE seconds to
finish before they are cancelled and retried elsewhere; a second signal exits at once. Exit codes: 0 stopped, 1 other
error, 2 bad setting, 3 no server.

It leaves by `os._exit`: with the SDK's threads running, 10 to 15 % of exits crashed. The event loop is asyncio's own:
uvloop saved 2 to 8 % of CPU and no wall time, and is a compiled dependency.
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

from plansurvive.activities.attempt.compact import Compacting
from plansurvive.activities.feature import WorkerFeatures
from plansurvive.activities.lifecycle.offered import make_storage, offered
from plansurvive.activities.tools.registry import load_tools
from plansurvive.activities.tools.tool import Tool, no_fault
from plansurvive.features.worker_features import features_of_worker, pool_features, process_features
from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import safe
from plansurvive.runtime import gc_tuning, namespaces, search_attributes
from plansurvive.runtime.connect import Connection, reach
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.joining import joined, next_step
from plansurvive.runtime.presence import Presence
from plansurvive.runtime.service.stop_signals import stop_on_signals, stop_with_parent
from plansurvive.runtime.service.worker_arguments import parser
from plansurvive.runtime.settings import Settings, said
from plansurvive.runtime.start_files import StartFiles, check_start_files
from plansurvive.runtime.task_queues import WORKER, Neighbours
from plansurvive.runtime.versions.version import deployment_of
from plansurvive.runtime.worker_pool import Processes
from plansurvive.runtime.workflow_runner import runner_for, stores_here, tuned
from plansurvive.workflows.policies import BEAT

FIRST = 1
"""Number of the first process of several."""
STICKY = timedelta(seconds=2)
"""How long a plan's workflow task waits for the worker that has it cached, before any other worker takes it."""
CACHED_WORKFLOWS = 1_000
WORKFLOW_TASKS = 8
"""Workflow tasks that a worker has at a time. Python decides one after the other: more would wait in the worker, where
the server can neither give them to others nor put those of higher priority, or of another fairness key, before them."""


def build(
    client: Client,
    settings: Settings,
    tools: Mapping[str, Tool],
    *,
    indexed: bool,
    cached: int = CACHED_WORKFLOWS,
    workflows: Sequence[type] = WORKFLOWS,
    fault: Callable[[str], None] = no_fault,
    neighbours: Neighbours | None = None,
    features: WorkerFeatures | None = None,
    polls: str = "",
) -> Worker:
    """Build a worker for the settings' task queue; does not start it. `polls`: another queue instead, of a feature.

    `indexed`: our custom search attributes are registered on the server. `cached`: number of workflows kept in memory;
    others are replayed from history on their next task. `fault` is called at the points of a tool where a crash of the
    worker matters; tests crash it there. `neighbours`: its version of the code, and whether others poll; else they may.
    `features`: of the process, which are running; else those of the settings.
    """
    return tuned(Worker(
        client,
        task_queue=polls or settings.task_queue,
        identity=identity(), deployment_config=deployment_of(neighbours.version if neighbours else None),
        workflows=workflows,
        activities=offered(client, settings, tools, indexed, fault,
            features or features_of_worker(client, settings, fault)),
        interceptors=[Compacting()], workflow_runner=runner_for(client, neighbours or Neighbours()),
        activity_executor=ThreadPoolExecutor(settings.max_activities + 2, thread_name_prefix="step"),
        max_concurrent_activities=settings.max_activities, max_concurrent_local_activities=settings.max_activities,
        max_eager_activity_reservations_per_workflow_task=settings.max_activities,
        max_heartbeat_throttle_interval=BEAT,
        max_cached_workflows=cached,
        max_concurrent_workflow_tasks=WORKFLOW_TASKS,
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(),
        sticky_queue_schedule_to_start_timeout=STICKY,
        graceful_shutdown_timeout=timedelta(seconds=settings.grace),
        max_workflow_task_external_storage_concurrency=1 if stores_here(client) else 3,
    ))  # fmt: skip


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
    tools = load_tools(settings.tools)
    process = process_features(settings, child)  # before it connects, which they may measure
    connection = await reach(settings, _say)
    for each in process:
        connection = each.connected(connection)
    make_storage(connection.client, settings)
    indexed = await search_attributes.ensure(connection.client) >= search_attributes.TOLD
    await namespaces.remember(settings, connection.client, connection.address)
    stopped = _stopped(child)
    # Synchronous tools run in this executor: one thread for each concurrent step, and some for file access.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_threads(settings)))
    neighbours = Neighbours(await joined(settings, connection.client))
    collector = asyncio.create_task(gc_tuning.keep_small())
    looking = asyncio.create_task(neighbours.keep_looking(connection.client, settings.task_queue, identity()))
    async with AsyncExitStack() as workers:
        for each in process:
            await workers.enter_async_context(each.running(connection.client, indexed))
        files = StartFiles(settings) if child in (None, FIRST) else None
        features = features_of_worker(connection.client, settings, fault)
        # Entered before the workers: it ends after them.
        await workers.enter_async_context(features.running(tools, _say, first=child in (None, FIRST)))
        running = _workers(connection.client, settings, tools, indexed, fault, features, neighbours)
        for worker in running:
            for each in process:
                each.made(worker)
            await workers.enter_async_context(worker)
        looks = Presence(settings.state_dir, connection.client, patience, _say, files)
        presence = asyncio.create_task(looks.keep(running, stopped))
        offer = [*tools, *(name for more in features.tools for name in more.specs)]
        _say(_greeting(connection, settings, offer, child))
        await next_step(connection.client, settings, neighbours.version, _say)
        await stopped.wait()
        _say(f"Stopping: running steps have {settings.grace:g} s to finish.")
    for task in (presence, looking, collector):
        task.cancel()
    _say("Stopped.")


def _stopped(child: int | None) -> asyncio.Event:
    """Set when the worker is to stop: by a signal; in a pool also when its parent is gone."""
    stopped = stop_on_signals()
    if child is not None:
        stop_with_parent(stopped)
    return stopped


def _threads(settings: Settings) -> int:
    return settings.max_activities * (1 + len(settings.queues)) + 8


def _workers(
    client: Client, settings: Settings, tools: Mapping[str, Tool], indexed: bool, fault: Callable[[str], None],
    features: WorkerFeatures, neighbours: Neighbours,
) -> list[Worker]:  # fmt: skip
    """The worker of the settings' queue, and one for the steps of each further queue."""
    bound = [settings.with_flags(task_queue=queue) for queue in settings.queues]
    make = functools.partial(build, client, tools=tools, indexed=indexed, fault=fault, features=features,
        neighbours=neighbours)  # fmt: skip
    more = [
        make(each, workflows=(), polls=queue)
        for each in (settings, *bound)
        for queue in features.queues(each.task_queue)
    ]
    return [make(settings), *(make(each, workflows=()) for each in bound), *more]


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a worker with command-line arguments and an environment; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    flags = vars(parser().parse_args(arguments))
    try:
        address, processes, child, patience = (flags.pop(n) for n in ("address", "processes", "child", "patience"))
        environ = {**environ, "TEMPORAL_ADDRESS": address} if address else environ
        settings = Settings.read(environ).with_flags(**flags)
        check_start_files(settings)  # before the server is looked for, which may take long
        if processes > 1 and child is None:
            return asyncio.run(_serve_in(settings, processes, arguments))
        gc_tuning.share_arenas()
        asyncio.run(serve(settings, child, patience))
    except PlanError as error:
        print(safe(said(error)), file=sys.stderr)
        return 3 if isinstance(error, NotConnected) else 2 if error.code.startswith("BAD_SETTING") else 1
    return 0


def main() -> None:
    """Entry point. Exits with `os._exit`: the SDK's threads may crash during interpreter shutdown."""
    try:
        code = run(sys.argv[1:], os.environ)
    except KeyboardInterrupt:  # before it listens to signals
        code = 130
    except Exception:
        traceback.print_exc()
        code = 1
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _serve_in(settings: Settings, processes: int, arguments: Sequence[str]) -> int:
    path = ("-P",) if sys.flags.safe_path else ()
    command = [sys.executable, *path, os.path.realpath(__file__), *arguments]
    async with pool_features(settings):
        return await Processes(command, processes, _say).run()


def _greeting(connection: Connection, settings: Settings, tools: Sequence[str], child: int | None) -> str:
    who = "" if child is None else f"Worker {child}: "
    return who + (
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

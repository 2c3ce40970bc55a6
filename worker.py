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
from temporalio.converter import StorageDriver
from temporalio.worker import PollerBehaviorAutoscaling, Worker

from activities.attempt.environment import environment_of
from activities.attempt.run import tool_activity
from activities.lifecycle.agent_history import AgentHistory, AgentTracker
from activities.lifecycle.check_plan import PlanChecker
from activities.lifecycle.compare_files import FileComparer
from activities.lifecycle.list_items import ItemLister
from activities.lifecycle.load_plan import ChildPlanLoader
from activities.lifecycle.record_end import EndRecorder, SummaryWriter
from activities.lifecycle.snapshot_workspace import SnapshotTaker
from activities.llm.ask_llm import AskLlm
from activities.llm.model import LanguageModel
from activities.mcp.of_settings import tool_servers
from activities.mcp.server_tools import KnownSpecs, ServerTools, of_servers
from activities.notify.deliver import Notifier
from activities.notify.targets import read_targets
from activities.provenance.journal import Journal
from activities.provenance.undo import FileChanges
from activities.tools.registry import load_tools, with_receivers
from activities.tools.tool import Tool, no_fault
from activities.workspace.allowed import WorkspaceRules
from activities.workspace.effect_log import EFFECTS, Effects
from plans.errors import PlanError
from plans.model import ToolSpec
from runtime import gc_tuning, namespaces, search_attributes, signing
from runtime.connect import Connection, reach, storage
from runtime.errors import NotConnected
from runtime.service.presence import Presence
from runtime.service.stop_signals import stop_on_signals, stop_with_parent
from runtime.service.worker_arguments import parser
from runtime.settings import Settings
from runtime.storage import LocalDirectory
from runtime.task_queues import WORKER, Neighbours
from runtime.value_store import ValueStore
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
    others poll the queue; without it they may.
    """
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        identity=identity(),
        workflows=workflows,
        activities=_activities(client, settings, tools, indexed, fault, servers),
        workflow_runner=runner_for(client, WORKFLOWS, neighbours or Neighbours()),
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


def _activities(
    client: Client, settings: Settings, tools: Mapping[str, Tool], indexed: bool, fault: Callable[[str], None],
    servers: ServerTools | None,
) -> list[Callable[..., object]]:  # fmt: skip
    """The tools, and the activities that workflows call."""
    tools = with_receivers(tools, settings.http_allow)
    own = {name: tool.spec for name, tool in tools.items()}
    specs = KnownSpecs(own, servers) if servers else own
    values, summaries = ValueStore(_driver(client, settings), settings.inline_bytes), SummaryWriter(settings.state_dir)
    effects = Effects.at(settings.state_dir / EFFECTS, strict=settings.edits == "strict")
    site = environment_of(settings, effects, fault, client.service_client.config.target_host)
    llm = LanguageModel(settings.openai_base_url, settings.openai_api_key, settings.model, settings.llm_timeout)
    changes = FileChanges(effects, site.watcher.journal if site.watcher else Journal(settings.state_dir), site.rules)
    plans = ChildPlanLoader(values, settings.state_dir, site)
    return [
        *(tool_activity(tool, values, effects, site) for tool in tools.values() if not tool.spec.durable),
        *([servers.activity(lambda tool: tool_activity(tool, values, effects, site))] if servers else []),
        _checker(settings, specs, indexed).check_plan,
        ItemLister(values).list_items,
        AskLlm(llm, values, tools=specs, context_tokens=settings.context_tokens).ask_llm,
        SnapshotTaker(llm.secrets, site, settings.state_dir).snapshot_workspace,
        EndRecorder(summaries, values).record_end,
        summaries.write_summary,
        AgentTracker(AgentHistory(settings.state_dir)).track_agent,
        changes.file_changes,
        FileComparer(site).compare_files,
        plans.load_plan,
        plans.plan_outputs,
        *Notifier(settings, fault).activities,
    ]


def _checker(settings: Settings, specs: Mapping[str, ToolSpec], indexed: bool) -> PlanChecker:
    return PlanChecker(
        tools=specs,
        default_workspace=str(settings.workspace) if settings.workspace else None,
        rules=WorkspaceRules.of(settings),
        strict_approvals=settings.approvals == "strict",
        decision_key=signing.public_key(settings),
        search_attributes=indexed,
        keeps_summaries=True,
        state_dir=settings.state_dir,
        targets=read_targets(settings),
    )


def _driver(client: Client, settings: Settings) -> StorageDriver:
    """The driver that the client stores large payloads with; step values go to the same place."""
    external = client.data_converter.external_storage
    return external.drivers[0] if external else storage(settings)


def _make_storage(client: Client, settings: Settings) -> None:
    """Make the directory of large values, if they are stored in one."""
    values = _driver(client, settings)
    if isinstance(values, LocalDirectory):
        values.create()


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
    connection = await reach(settings, _say)
    _make_storage(connection.client, settings)
    indexed = await search_attributes.ensure(connection.client) >= search_attributes.TOLD
    await namespaces.remember(settings, connection.client, connection.address)
    stopped = stop_on_signals()
    if child is not None:
        stop_with_parent(stopped)
    # Synchronous tools run in this executor: one thread for each concurrent step, and some for file access.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(settings.max_activities + 8))
    neighbours, collector = Neighbours(), asyncio.create_task(gc_tuning.keep_small())
    looking = asyncio.create_task(neighbours.keep_looking(connection.client, settings.task_queue, identity()))
    async with AsyncExitStack() as workers:
        servers = tool_servers(settings, connection.address)
        await workers.enter_async_context(servers)  # first, as they end after the steps that use them
        served = await of_servers(servers, settings.state_dir, tools, _say)
        running = _workers(connection.client, settings, tools, indexed, fault, served, neighbours)
        for each in running:
            await workers.enter_async_context(each)
        looks = Presence(settings.state_dir, connection.client, patience, _say)
        presence = asyncio.create_task(looks.keep(running, stopped))
        greeting = _greeting(connection, settings, [*tools, *(served.specs if served else ())])
        _say(("" if child is None else f"Worker {child}: ") + greeting)
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
    make = functools.partial(build, client, tools=tools, indexed=indexed, fault=fault, servers=served)
    return [make(settings, neighbours=neighbours), *(make(each, workflows=()) for each in bound)]


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

"""The worker: settings -> tools -> activities and workflows -> a Temporal worker. The only file that knows all parts.

`python worker.py` (or `plan worker`) listens until SIGTERM or SIGINT; running steps then get PLANS_GRACE seconds to
finish before they are handed back, and a second signal ends it at once. Exit codes: 0 stopped, 2 bad setting, 3 no
server.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
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
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from activities.attempt.environment import environment_of
from activities.attempt.run import tool_activity
from activities.lifecycle.agent_history import AgentHistory, AgentTracker
from activities.lifecycle.check_plan import PlanChecker
from activities.lifecycle.compare_files import compare_files
from activities.lifecycle.record_end import EndRecorder, SummaryWriter
from activities.lifecycle.snapshot_workspace import SnapshotTaker
from activities.llm.ask_llm import AskLlm
from activities.llm.model import LanguageModel
from activities.provenance.journal import Journal
from activities.provenance.undo import FileChanges
from activities.tools.registry import load_tools
from activities.tools.tool import Tool, no_fault
from activities.workspace.effect_log import EFFECTS, Effects
from plans.errors import PlanError
from plans.model import ToolSpec
from runtime import gc_tuning, namespaces, search_attributes
from runtime.connect import Connection, reach, storage
from runtime.errors import NotConnected
from runtime.settings import Settings
from runtime.storage import LocalDirectory
from runtime.task_queues import WORKER
from runtime.value_store import ValueStore
from runtime.worker_pool import Processes
from runtime.workflow_runner import ContextFreeRunner, needs_no_context, passed_through, with_patience
from workflows.agent import AgentWorkflow
from workflows.file_changes import ChangesWorkflow
from workflows.plan import PlanWorkflow

WORKFLOWS: tuple[type, ...] = (ChangesWorkflow, PlanWorkflow, AgentWorkflow)
PASSED_THROUGH = passed_through(WORKFLOWS)
STICKY = timedelta(seconds=2)
"""How long a plan waits for the worker that knew it, before any other takes over."""
BEAT = timedelta(seconds=1)
"""How often a heartbeat reaches the server, and so how soon a step hears that it is cancelled."""
CACHED_WORKFLOWS = 1_000
MAX_PROCESSES = 64


def build(
    client: Client,
    settings: Settings,
    tools: Mapping[str, Tool],
    *,
    indexed: bool,
    cached: int = CACHED_WORKFLOWS,
    workflows: Sequence[type] = WORKFLOWS,
    fault: Callable[[str], None] = no_fault,
) -> Worker:
    """A worker for the settings' task queue, not yet started. `indexed`: the server knows what plans tell it.

    `cached` plans are kept in memory; any other is replayed from its history when something happens to it. Tests pass
    a `fault` that is called at the points of a tool where the death of the worker matters.
    """
    worker = Worker(
        client,
        task_queue=settings.task_queue,
        identity=f"{WORKER}{os.getpid()}@{socket.gethostname()}",
        workflows=workflows,
        activities=_activities(client, settings, tools, indexed, fault),
        workflow_runner=_runner(client),
        activity_executor=ThreadPoolExecutor(settings.max_activities + 2, thread_name_prefix="step"),
        max_concurrent_activities=settings.max_activities,
        max_heartbeat_throttle_interval=BEAT,
        max_cached_workflows=cached,
        workflow_task_poller_behavior=PollerBehaviorAutoscaling(),
        activity_task_poller_behavior=PollerBehaviorAutoscaling(),
        sticky_queue_schedule_to_start_timeout=STICKY,
        graceful_shutdown_timeout=timedelta(seconds=settings.grace),
        max_workflow_task_external_storage_concurrency=1 if _stores_here(client) else 3,
    )
    return with_patience(worker)


def _runner(client: Client) -> SandboxedWorkflowRunner:
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*PASSED_THROUGH)
    if not needs_no_context(client.data_converter):
        return SandboxedWorkflowRunner(restrictions=restrictions)
    return ContextFreeRunner(restrictions=restrictions, filed_by_workflow=not _stores_here(client))


def _stores_here(client: Client) -> bool:
    """Whether large payloads go to a directory, if anywhere: then a task for each payload costs more than it saves."""
    external = client.data_converter.external_storage
    return external is None or all(isinstance(driver, LocalDirectory) for driver in external.drivers)


def _activities(
    client: Client, settings: Settings, tools: Mapping[str, Tool], indexed: bool, fault: Callable[[str], None]
) -> list[Callable[..., object]]:
    """The tools, and what the workflows want done besides."""
    specs = {name: tool.spec for name, tool in tools.items()}
    values, summaries = ValueStore(_driver(client, settings), settings.inline_bytes), SummaryWriter(settings.state_dir)
    effects = Effects.at(settings.state_dir / EFFECTS, strict=settings.edits == "strict")
    site = environment_of(settings, effects, fault)
    llm = LanguageModel(settings.openai_base_url, settings.openai_api_key, settings.model, settings.llm_timeout)
    changes = FileChanges(effects, site.watcher.journal if site.watcher else Journal(settings.state_dir))
    return [
        *(tool_activity(tool, values, effects, site) for tool in tools.values() if not tool.spec.durable),
        _checker(settings, specs, indexed).check_plan,
        AskLlm(llm, values, tools=specs).ask_llm,
        SnapshotTaker(llm.secrets).snapshot_workspace,
        EndRecorder(summaries, values).record_end,
        summaries.write_summary,
        AgentTracker(AgentHistory(settings.state_dir)).track_agent,
        changes.file_changes,
        compare_files,
    ]


def _checker(settings: Settings, specs: Mapping[str, ToolSpec], indexed: bool) -> PlanChecker:
    return PlanChecker(
        tools=specs,
        default_workspace=str(settings.workspace) if settings.workspace else None,
        strict_approvals=settings.approvals == "strict",
        search_attributes=indexed,
        keeps_summaries=True,
    )


def _driver(client: Client, settings: Settings) -> StorageDriver:
    """The storage the client keeps large payloads in; values of steps go to the same place."""
    external = client.data_converter.external_storage
    return external.drivers[0] if external else storage(settings)


async def serve(settings: Settings, child: int | None = None, fault: Callable[[str], None] = no_fault) -> None:
    """Listen until told to stop; raises PlanError when there is no server, or a setting cannot be used.

    `child` is the number of a process among several; it stops also when its standard input closes. `fault` is that of
    `build`.
    """
    settings.make_state_dir()
    tools = load_tools(settings.tools)
    connection = await reach(settings, _say)
    indexed = await search_attributes.ensure(connection.client) >= search_attributes.TOLD
    await namespaces.remember(settings, connection.client, connection.address)
    stopped = _stop_on_signals()
    if child is not None:
        _stop_with_parent(stopped)
    # Tools that are plain functions run in the loop's threads: as many as there may be steps, and some for files.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(settings.max_activities + 8))
    collector = asyncio.create_task(gc_tuning.keep_small())
    async with AsyncExitStack() as workers:
        await workers.enter_async_context(build(connection.client, settings, tools, indexed=indexed, fault=fault))
        for queue in settings.queues:
            bound = settings.with_flags(task_queue=queue)
            steps_only = build(connection.client, bound, tools, indexed=indexed, workflows=(), fault=fault)
            await workers.enter_async_context(steps_only)
        _say(("" if child is None else f"Worker {child}: ") + _greeting(connection, settings, len(tools)))
        await stopped.wait()
        _say(f"Stopping: running steps have {settings.grace:g} s to finish.")
    collector.cancel()
    _say("Stopped.")


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Serve with these flags and this environment; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    flags = vars(_parser().parse_args(arguments))
    try:
        address, processes, child = (flags.pop(name) for name in ("address", "processes", "child"))
        environ = {**environ, "TEMPORAL_ADDRESS": address} if address else environ
        settings = Settings.read(environ).with_flags(**flags)
        if processes > 1 and child is None:
            return asyncio.run(_serve_in(processes, arguments))
        gc_tuning.share_arenas()
        asyncio.run(serve(settings, child))
    except PlanError as error:
        print(f"{error.code}: {error.message}", file=sys.stderr)
        return 3 if isinstance(error, NotConnected) else 2 if error.code.startswith("BAD_SETTING") else 1
    return 0


def main() -> None:
    """Run as a program; leaves without tearing the interpreter down, which the SDK's threads do not always survive."""
    try:
        code = run(sys.argv[1:], os.environ)
    except Exception:
        traceback.print_exc()
        code = 1
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="plan worker", description="Run the steps of plans until told to stop.")
    parser.add_argument("--address", metavar="HOST:PORT", help="Temporal server (TEMPORAL_ADDRESS)")
    parser.add_argument("--queue", dest="task_queue", metavar="NAME", help="task queue (PLANS_TASK_QUEUE)")
    parser.add_argument("--queues", metavar="A,B", help="take the steps of these queues as well (PLANS_QUEUES)")
    parser.add_argument("--workspace", metavar="DIR", help="for plans that name none (PLANS_WORKSPACE)")
    parser.add_argument("--tools", metavar="MODULES", help="your own tools, comma separated (PLANS_TOOLS)")
    parser.add_argument("--state-dir", metavar="DIR", help="large values, summaries (PLANS_STATE_DIR)")
    parser.add_argument("--approvals", metavar="normal|strict", help="strict: no waivers (PLANS_APPROVALS)")
    parser.add_argument("--max-activities", metavar="N", help="steps at the same time (PLANS_MAX_ACTIVITIES)")
    parser.add_argument("--inline-bytes", metavar="N", help="longer values go to a file (PLANS_INLINE_BYTES)")
    parser.add_argument("--grace", metavar="SECONDS", help="to finish steps at the end (PLANS_GRACE)")
    parser.add_argument("--processes", metavar="N", type=_processes, default=1, help="worker processes, 1 to 64")
    parser.add_argument("--child", metavar="N", type=int, help=argparse.SUPPRESS)
    return parser


def _processes(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_PROCESSES:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_PROCESSES}")
    return int(text)


async def _serve_in(processes: int, arguments: Sequence[str]) -> int:
    command = [sys.executable, os.path.realpath(__file__), *arguments]
    return await Processes(command, processes, _say).run()


def _stop_on_signals() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second ends the process: its children notice and end as well."""
    stopped = asyncio.Event()

    def stop() -> None:
        if stopped.is_set():
            os._exit(130)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    return stopped


def _stop_with_parent(stopped: asyncio.Event) -> None:
    """Set it when standard input closes: the process that holds the other end is gone."""
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()

    def look() -> None:
        if not os.read(descriptor, 1):
            loop.remove_reader(descriptor)
            stopped.set()

    loop.add_reader(descriptor, look)


def _greeting(connection: Connection, settings: Settings, tools: int) -> str:
    return (
        f"Listening to {_queues(settings)} in namespace '{connection.client.namespace}' at "
        f"{connection.address}; workspace {settings.workspace or 'as each plan says'}; {tools} tools."
    )


def _queues(settings: Settings) -> str:
    names = [f"'{name}'" for name in (settings.task_queue, *settings.queues)]
    return f"queue{'s' * (len(names) > 1)} {', '.join(names)}"


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()

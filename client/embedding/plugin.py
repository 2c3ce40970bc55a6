"""`PlansPlugin`: plans and their tools in a worker of yours, next to your own workflows and activities.

    client = await Client.connect("localhost:7233", plugins=[PlansPlugin(workspace="/srv/files")])
    worker = Worker(client, task_queue="orders", workflows=[Order], activities=[charge])

The client gets our data converter, the worker our workflows, activities and tools. A workflow of yours then runs a plan
as a child (`client.embedding.children`), clients start plans with `client.runs` on the worker's task queue. A plugin of
the SDK: https://docs.temporal.io/develop/plugins-guide.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from temporalio.client import ClientConfig
from temporalio.converter import DataConverter
from temporalio.plugin import SimplePlugin
from temporalio.service import ConnectConfig, ServiceClient
from temporalio.worker import Worker, WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from plansurvive.activities.attempt.compact import Compacting
from plansurvive.activities.lifecycle.offered import make_storage, offered
from plansurvive.activities.tools.registry import load_tools
from plansurvive.activities.tools.tool import Tool, no_fault
from plansurvive.features.worker_features import features_of_worker
from plansurvive.features.workflow_types import WORKFLOWS
from plansurvive.plans.errors import PlanError
from plansurvive.runtime import search_attributes
from plansurvive.runtime.connect import compression, storage
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import converter
from plansurvive.runtime.workflow_runner import PASSED_THROUGH, SharingRunner, tuned
from plansurvive.workflows.policies import BEAT


class PlansPlugin(SimplePlugin):
    """Adds plans to a client and to each worker made with it.

    `settings`: those of a worker, by default of the environment (PLANS_*); the task queue is that of your worker.
    `workspace`: directory of plans that name none. `tools`: tools of yours beside the built-in ones, made with `@tool`.
    `replaced`: tools by name that take the place of others, as in tests. Raises SettingError for bad settings.

    Not with it: tool servers of mcp.toml, further queues, and starting as many steps at once as there are free slots.
    """

    def __init__(
        self, settings: Settings | None = None, *, workspace: str | Path | None = None, tools: Sequence[Tool] = (),
        replaced: Mapping[str, Tool] | None = None,
    ) -> None:  # fmt: skip
        settings = settings or Settings.read(os.environ)
        self._settings = settings.with_flags(workspace=str(Path(workspace).absolute()) if workspace else None)
        self._tools = _with(load_tools(self._settings.tools), tools, replaced or {})
        self._is_indexed = False
        super().__init__("plans", data_converter=self._converter, workflows=WORKFLOWS, workflow_runner=_runner)

    def configure_client(self, config: ClientConfig) -> ClientConfig:
        """Give the client our data converter. Raises PlanError CONVERTER_TAKEN if it has one of its own."""
        found = config.get("data_converter")
        if found is not None and found is not DataConverter.default and found != DataConverter.default:
            problem = "the client's data converter is not the one that plans need"
            raise PlanError(f"{problem}; leave it out, or use a second client. PLANS_KEYS encrypts", "CONVERTER_TAKEN")
        return super().configure_client(config)

    async def connect_service_client(
        self, config: ConnectConfig, next: Callable[[ConnectConfig], Awaitable[ServiceClient]]
    ) -> ServiceClient:
        """Connect, without compression to a server on this machine: see PLANS_GRPC_COMPRESSION."""
        config.grpc_compression = compression(self._settings, config.target_host, config.grpc_compression)
        return await super().connect_service_client(config, next)

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add our workflows, activities and tools to a worker."""
        client, settings = config["client"], self._settings.with_flags(task_queue=config["task_queue"])
        settings.make_state_dir()
        make_storage(client, settings)
        own = list(config.get("activities") or ())
        ours = offered(
            client,
            settings,
            self._tools,
            lambda: self._is_indexed,
            no_fault,
            features_of_worker(client, settings),
        )
        taken = {_name(each) for each in own} & {_name(each) for each in ours}
        if taken:
            names = ", ".join(sorted(taken))
            raise PlanError(f"your worker has activities named as ours: {names}; rename yours", "NAME_TAKEN")
        config = super().configure_worker(config)
        config["activities"] = [*own, *ours]
        if config.get("activity_executor") is None:
            slots = config.get("max_concurrent_activities") or settings.max_activities
            config["activity_executor"] = ThreadPoolExecutor(slots + 2, thread_name_prefix="step")
            config["max_concurrent_activities"] = slots
        config["max_heartbeat_throttle_interval"] = BEAT
        config["interceptors"] = [*(config.get("interceptors") or ()), Compacting()]
        return config

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Look what the server knows of our search attributes, then run."""
        self._is_indexed = await search_attributes.ensure(worker.client) >= search_attributes.TOLD
        tuned(worker)
        await super().run_worker(worker, next)

    def _converter(self, _: DataConverter | None) -> DataConverter:
        settings = self._settings
        return converter(storage(settings), settings.external_bytes, sealing_of(settings))


def _with(tools: Mapping[str, Tool], more: Sequence[Tool], replaced: Mapping[str, Tool]) -> dict[str, Tool]:
    """The tools of the worker by name. Raises PlanError for a name that is taken, or that is not there to replace."""
    named = {each.spec.name: each for each in more}
    if taken := sorted(named.keys() & tools.keys()):
        raise PlanError(f"there are tools of these names already: {', '.join(taken)}; rename yours", "NAME_TAKEN")
    if unknown := sorted(replaced.keys() - tools.keys() - named.keys()):
        raise PlanError(f"no tools of these names, to be replaced: {', '.join(unknown)}", "UNKNOWN_TOOL")
    return {**tools, **named, **replaced}


def _runner(found: WorkflowRunner | None) -> WorkflowRunner:
    """The worker's runner, which passes our modules through the sandbox as worker.py does, and starts of plans."""
    found = found or SandboxedWorkflowRunner()
    if not isinstance(found, SandboxedWorkflowRunner):
        return found
    restrictions = found.restrictions.with_passthrough_modules(*PASSED_THROUGH)
    ours = frozenset(each.__name__ for each in WORKFLOWS)  # our types are named like their classes
    return SharingRunner(restrictions=restrictions, runner_class=found.runner_class, ours=ours)


def _name(function: Callable[..., object]) -> str:
    definition = getattr(function, "__temporal_activity_definition", None)
    return str(getattr(definition, "name", None) or getattr(function, "__name__", ""))

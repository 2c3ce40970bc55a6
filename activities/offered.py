"""The activities that a worker offers: the tools, and what workflows call besides, wired from the settings.

A part of the composition root (worker.py), which alone imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from temporalio.client import Client
from temporalio.converter import StorageDriver

from activities.attempt.environment import environment_of
from activities.attempt.run import tool_activity
from activities.caching.results import Results
from activities.guards.workspace_lock import has_ended, lock_workspace
from activities.hosts.hosting import HostActivities, Hosting
from activities.lifecycle.agent_history import AgentTracker, history_store
from activities.lifecycle.check_plan import PlanChecker
from activities.lifecycle.compare_files import FileComparer
from activities.lifecycle.list_items import ItemLister
from activities.lifecycle.load_plan import ChildPlanLoader
from activities.lifecycle.load_undo import UndoLoader
from activities.lifecycle.record_end import EndRecorder, SummaryWriter
from activities.lifecycle.snapshot_workspace import SnapshotTaker
from activities.limits.admission import Admissions
from activities.limits.limiter_client import limits_of
from activities.llm.ask_llm import AskLlm
from activities.llm.model import LanguageModel
from activities.mcp.server_tools import KnownSpecs, ServerTools
from activities.mcp.waiting_check import WaitingChecker
from activities.notify.deliver import Notifier
from activities.notify.targets import read_targets
from activities.provenance.journal import Journal
from activities.provenance.undo import FileChanges
from activities.tools.registry import with_receivers, with_secrets
from activities.tools.tool import Tool
from activities.upkeep.prune import Pruner
from activities.workspace.allowed import WorkspaceRules
from activities.workspace.effect_log import Effects
from plans.model import ToolSpec
from runtime import signing
from runtime.connect import storage
from runtime.keys.at_rest import AtRest
from runtime.keys.of_settings import ring_of
from runtime.secrets.store import store_of
from runtime.settings import Settings
from runtime.storage import LocalDirectory
from runtime.value_store import ValueStore


def offered(
    client: Client, settings: Settings, tools: Mapping[str, Tool], indexed: bool | Callable[[], bool],
    fault: Callable[[str], None], servers: ServerTools | None, limits: Admissions | None = None,
) -> list[Callable[..., object]]:  # fmt: skip
    """The tools, and the activities that workflows call. `indexed`: whether the server has our search attributes."""
    named = store_of(settings)
    tools = with_secrets(with_receivers(tools, settings.http_allow), named)
    own = {name: tool.spec for name, tool in tools.items()}
    specs = KnownSpecs(own, servers) if servers else own
    values, rest = ValueStore(_driver(client, settings), settings.inline_bytes), AtRest(ring_of(settings))
    summaries = SummaryWriter(settings.state_dir, rest)
    effects = Effects.of(settings)
    site = environment_of(settings, effects, fault, client.service_client.config.target_host)
    limits = limits or limits_of(client, settings)
    site = replace(site, limits=limits, hosting=Hosting.of(settings, values, effects),
        results=Results.of(settings, tools.values(), rest))  # fmt: skip
    llm = LanguageModel(settings.openai_base_url, settings.openai_api_key, settings.model, settings.llm_timeout, named)
    journal = site.watcher.journal if site.watcher else Journal(settings.state_dir)
    changes = FileChanges(effects, journal, site.rules, signing.public_key(settings))
    plans = ChildPlanLoader(values, settings.state_dir, site)
    return [
        *(tool_activity(tool, values, effects, site) for tool in tools.values() if not tool.spec.durable),
        *([servers.activity(lambda tool: tool_activity(tool, values, effects, site))] if servers else []),
        _check(_checker(settings, specs, indexed), servers),
        ItemLister(values).list_items,
        AskLlm(llm, values, tools=specs, context_tokens=settings.context_tokens, limits=limits).ask_llm,
        SnapshotTaker(llm.secrets, site, settings.state_dir).snapshot_workspace,
        EndRecorder(summaries, values).record_end,
        summaries.write_summary,
        AgentTracker(history_store(settings)).track_agent,
        changes.file_changes,
        FileComparer(site).compare_files,
        plans.load_plan,
        plans.plan_outputs,
        UndoLoader(client).load_undo,
        lock_workspace,
        has_ended,
        Pruner(client, settings).prune,
        *HostActivities(site.hosting).activities,
        *Notifier(settings, fault).activities,
    ]


def _check(checker: PlanChecker, servers: ServerTools | None) -> Callable[..., object]:
    return WaitingChecker(checker.check_plan, servers).check_plan if servers else checker.check_plan


def _checker(settings: Settings, specs: Mapping[str, ToolSpec], indexed: bool | Callable[[], bool]) -> PlanChecker:
    return PlanChecker(
        tools=specs,
        default_workspace=str(settings.workspace) if settings.workspace else None,
        rules=WorkspaceRules.of(settings),
        strict_approvals=settings.approvals == "strict",
        workspace_lock=settings.workspace_lock == "all",
        decision_key=signing.public_key(settings),
        search_attributes=indexed,
        keeps_summaries=True,
        state_dir=settings.state_dir,
        targets=read_targets(settings),
        own_files=settings.host is not None,
    )


def _driver(client: Client, settings: Settings) -> StorageDriver:
    """The driver that the client stores large payloads with; step values go to the same place."""
    external = client.data_converter.external_storage
    return external.drivers[0] if external else storage(settings)


def make_storage(client: Client, settings: Settings) -> None:
    """Make the directory of large values, if they are stored in one."""
    values = _driver(client, settings)
    if isinstance(values, LocalDirectory):
        values.create()

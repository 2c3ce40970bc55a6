"""The activities that a worker offers: the tools, and what workflows call besides, wired from the settings.

A part of the composition root (worker.py), which alone imports it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment, environment_of
from plansurvive.activities.attempt.run import Attempts, tool_activity
from plansurvive.activities.attempt.stored_arguments import whole_value
from plansurvive.activities.feature import MoreTools, WorkerFeatures
from plansurvive.activities.lifecycle.ask_llm import AskLlm
from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.activities.lifecycle.record_end import EndRecorder, SummaryWriter
from plansurvive.activities.lifecycle.snapshot_workspace import SnapshotTaker
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.activities.tools.registry import with_receivers
from plansurvive.activities.tools.tool import Tool
from plansurvive.activities.values.results import keep
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.contents import stamp_at
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.activity_io import Call, CheckRequest, Facts, Return
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.execution.outputs import OutputsRequest, evaluated
from plansurvive.plans.expressions.evaluation import MAX_CHARACTERS_IN_ACTIVITY, UNITS_IN_ACTIVITY, Budget
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.files.file_check import FileDifferences, FilesSeen
from plansurvive.plans.flow.opened import ListItems, Opened
from plansurvive.plans.flow.progress import items_of
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.connect import storage_of
from plansurvive.runtime.feature import sealing_of
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore


def offered(
    client: Client, settings: Settings, tools: Mapping[str, Tool], indexed: bool | Callable[[], bool],
    fault: Callable[[str], None], features: WorkerFeatures,
) -> list[Callable[..., object]]:  # fmt: skip
    """The tools, and the activities that workflows call. `indexed`: whether the server has our search attributes."""
    tools = with_receivers(tools, settings.http_allow)
    tools = {name: replace(tool, spec=features.described(tool.spec)) for name, tool in tools.items()}
    own = {name: tool.spec for name, tool in tools.items()}
    more = features.tools
    specs = KnownSpecs(own, more, features.described) if more else own
    values = ValueStore(storage_of(client, settings), settings.inline_bytes)
    summaries = SummaryWriter(settings.state_dir, sealing_of(settings))
    effects = Effects.of(settings)
    site = environment_of(settings, effects, fault, client.service_client.config.target_host, features.masked)
    site = replace(site, layers=features.layers(tools.values()))
    llm = LanguageModel(
        settings.openai_base_url, settings.openai_api_key, settings.model, settings.llm_timeout, features.masked
    )
    return [
        *(tool_activity(tool, values, effects, site) for tool in tools.values() if not tool.spec.durable),
        *([_any_of(more, lambda tool: tool_activity(tool, values, effects, site))] if more else []),
        _check(_checker(settings, specs, indexed, features), features.before_check),
        ItemLister(values).list_items,
        AskLlm(
            llm,
            values,
            tools=specs,
            context_tokens=settings.context_tokens,
            layers=site.layers,
            kinds=features.answers,
            composers=features.composers,
        ).ask_llm,
        SnapshotTaker(llm.secrets, site, settings.state_dir, features.library).snapshot_workspace,
        EndRecorder(summaries, values, features.language, features.views).record_end,
        summaries.write_summary,
        FileComparer(site).compare_files,
        PlanOutputs(values).plan_outputs,
        *features.activities,
        *features.activities_with(Attempts(values, effects, site, tools)),
    ]


class KnownSpecs(Mapping[str, ToolSpec]):
    """The specs of a worker's own tools, and of those that features offer now."""

    def __init__(
        self, own: Mapping[str, ToolSpec], more: Sequence[MoreTools], described: Callable[[ToolSpec], ToolSpec]
    ) -> None:
        self._own, self._more, self._described = own, more, described

    def __getitem__(self, name: str) -> ToolSpec:
        if name in self._own:
            return self._own[name]
        for place in [*(each.specs for each in self._more), *(each.earlier for each in self._more)]:
            if name in place:
                return self._described(place[name])
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._own or any(name in each.specs for each in self._more)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._own, *(name for each in self._more for name in each.specs)]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _any_of(
    more: Sequence[MoreTools], attempt_of: Callable[[Tool], Callable[[Call], Awaitable[Return]]]
) -> Callable[..., Awaitable[Return]]:
    """One activity for all tools of features: one that a feature gets later needs no other worker."""

    @activity.defn(dynamic=True)
    async def tool_of_feature(arguments: Sequence[RawValue]) -> Return:
        name = activity.info().activity_type
        tool = next((tool for each in more if (tool := each.tool(name)) is not None), None)
        if tool is None:
            text = f"Activity function {name} is not registered on this worker, and no server of its mcp.toml has it"
            raise ApplicationError(text, type="NotFoundError")
        return await attempt_of(tool)(activity.payload_converter().from_payload(arguments[0].payload, Call))

    return tool_of_feature


def _check(checker: PlanChecker, before: Sequence[Callable[[CheckRequest], Awaitable[None]]]) -> Callable[..., object]:
    """The activity `check_plan`, after what features wait for."""
    if not before:
        return checker.check_plan

    @activity.defn(name="check_plan")
    async def check_plan(request: CheckRequest) -> Facts:
        for waiting in before:
            await waiting(request)
        return await asyncio.to_thread(checker.check_plan, request)

    return check_plan


def _checker(
    settings: Settings, specs: Mapping[str, ToolSpec], indexed: bool | Callable[[], bool], features: WorkerFeatures
) -> PlanChecker:
    return PlanChecker(
        tools=specs,
        default_workspace=str(settings.workspace) if settings.workspace else None,
        rules=WorkspaceRules.of(settings),
        strict_approvals=settings.approvals == "strict",
        must_sign=settings.decisions == "signed",
        search_attributes=indexed,
        keeps_summaries=True,
        features=features,
        own_files=features.gives_directories,
    )


def make_storage(client: Client, settings: Settings) -> None:
    """Make the directory of large values, if they are stored in one."""
    values = storage_of(client, settings)
    if isinstance(values, LocalDirectory):
        values.create()


@dataclass(frozen=True)
class PlanOutputs:
    """The activity, with the storage of this worker."""

    values: ValueStore

    @activity.defn(name="plan_outputs")
    async def plan_outputs(self, request: OutputsRequest) -> dict[str, Any]:
        """`{value}` of a plan, or `{large}` if it is stored outside history. Raises ApplicationError BAD_OUTPUT."""
        try:
            names = list(request.large)
            stored = await asyncio.gather(*(self.values.get(request.large[name]) for name in names))
            whole = {**request.values, **dict(zip(names, stored, strict=True))}
            for name, composed in request.composed.items():
                whole[name] = await whole_value(composed, self.values)
            budget = Budget(UNITS_IN_ACTIVITY, MAX_CHARACTERS_IN_ACTIVITY)
            value = await asyncio.to_thread(evaluated, request, whole, budget)
            kept = await keep(value, self.values)
        except PlanError as error:
            retried = isinstance(error, ToolError) and error.retryable
            raise ApplicationError(error.message[:4_000], type=error.code, non_retryable=not retried) from None
        return {"large": kept.model_dump(mode="json")} if isinstance(kept, LargeValue) else {"value": kept}


@dataclass(frozen=True)
class FileComparer:
    """The activity, with the rules of this worker."""

    site: ToolEnvironment = field(default_factory=ToolEnvironment)

    @activity.defn(name="compare_files", no_thread_cancel_exception=True)
    def compare_files(self, seen: FilesSeen) -> FileDifferences:
        """The files that changed, and those that were deleted or can no longer be read.

        All are among the latter where the workspace is refused, or is another directory.
        """
        try:
            self.site.check(seen.workspace, seen.directory)
        except ToolError:
            return FileDifferences(deleted=list(seen.stamps))
        workspace = self.site.workspace(seen.workspace, seen.directory)
        now = {path: _stamp(workspace, path) for path in seen.stamps}
        changed = [path for path, stamp in seen.stamps.items() if (there := now[path]) and not stamp.is_same_as(there)]
        return FileDifferences(changed=changed, deleted=[path for path, stamp in now.items() if stamp is None])


def _stamp(workspace: Workspace, path: str) -> Stamp | None:
    try:
        with workspace.file(path) as place:
            return stamp_at(place)
    except (ToolError, OSError):
        return None


MAX_BYTES = 1_500_000
"""Bytes of the items as JSON: they stay in history, where a result may have 2 MB (TEMPORAL.md 2)."""


@dataclass(frozen=True)
class ItemLister:
    """Reads the worker's value store."""

    values: ValueStore

    @activity.defn(name="list_items")
    async def list_items(self, request: ListItems) -> Opened:
        """The items and their keys. Raises ApplicationError with the code of what is wrong with the list."""
        try:
            known: dict[str, Any] = dict(request.values)
            for name, large in request.large.items():
                known[name] = await self.values.get(large)
            for name, composed in request.composed.items():
                known[name] = await whole_value(composed, self.values)
            budget = Budget(UNITS_IN_ACTIVITY, MAX_CHARACTERS_IN_ACTIVITY)
            found = await asyncio.to_thread(items_of, request.rule, known, budget)
        except PlanError as error:
            raise ApplicationError(error.message, type=error.code, non_retryable=True) from error
        size = len(found.model_dump_json(exclude_defaults=True).encode())
        if size > MAX_BYTES:
            text = f"forEach: the items have {size} bytes, {MAX_BYTES} are allowed; list less of each, such as a path"
            raise ApplicationError(text, type="LIST_TOO_LARGE", non_retryable=True)
        return found

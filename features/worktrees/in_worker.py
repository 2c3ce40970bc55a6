"""Worktrees in a worker: the layer that makes a call in its worktree, and commits what it has left there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client

from plansurvive.activities.feature import Attempt, InWorker, Layer, MoreTools
from plansurvive.activities.tools.registry import source_files
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.features.worktrees.merge_tool import merge_tool, revert_tool
from plansurvive.features.worktrees.model import WorktreeNote, WorktreeOrder
from plansurvive.features.worktrees.rules import name_of_file
from plansurvive.features.worktrees.settings import folder_of
from plansurvive.features.worktrees.trees import Trees
from plansurvive.plans.activity_io import Return
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.plans.model import Plan, Problem, ToolSpec
from plansurvive.runtime.settings import Settings

T = TypeVar("T")


class InTree(Layer):
    """Around attempts: those with an order are made in its worktree."""

    def __init__(self, trees: Trees, names: ProtectedNames, closed: frozenset[tuple[int, int]]) -> None:
        self._trees, self._names, self._closed = trees, names, closed

    async def attempt(self, tool: Tool, context: ToolContext, inner: Callable[[], Awaitable[Return]]) -> Return:
        """Make it in the worktree. What it has changed is committed once it has a value; a retry finds it there."""
        call = context.call
        order = call.known_part(WorktreeOrder)
        if order is None or not order.tree:
            return await inner()
        workspace = context.workspace.root
        with context.workspace.directory("."):  # which is the directory that the plan knows, or this raises
            tree = await asyncio.to_thread(self._trees.opened, order, workspace)
        place = {"workspace": tree.path, "directory": tree.record.directory, "stamps": order.stamps}
        context.call = call.model_copy(update=place)
        context.workspace = Workspace(tree.path, self._names, self._closed, tree.record.directory, call.plan_id)
        try:
            done = await inner()
            left = None
            if tool.spec.effect != "pure":
                left = await asyncio.to_thread(self._trees.committed, tree, order)
        except BaseException:
            _name_files(context, order.tree)
            raise
        return _named(done, order.tree, left)

    def call(self, attempt: Attempt, inner: Callable[[], Awaitable[Any]]) -> Awaitable[Any]:
        """Commands may read the git directory of their worktree, and the objects that it refers to."""
        context = attempt.context
        order = context.call.known_part(WorktreeOrder)
        if order is not None and order.tree and attempt.tool.is_opaque:
            context.sandbox = replace(context.sandbox, readable=(*context.sandbox.readable, *_seen(context)))
        return inner()


def _seen(context: ToolContext) -> list[str]:
    folder = context.workspace.root.rpartition("/")[0]
    objects = Path(folder, "git", "objects", "info", "alternates").read_text()  # ours: no step can write it
    return [f"{folder}/git", objects.rstrip("\n")]


def _named(done: Return, tree: str, left: WorktreeNote | None) -> Return:
    """What a call has returned, with the names that its files have in the run."""
    files = {
        "read": _keys(done.read, tree),
        "wrote": _keys(done.wrote, tree),
        "deleted": _names(done.deleted, tree),
        "shared": _names(done.shared, tree),
        "missing": _names(done.missing, tree),
    }
    parts = {**done.parts, WorktreeNote.feature: left} if left is not None else done.parts
    return done.model_copy(update={**files, "parts": parts})


def _name_files(context: ToolContext, tree: str) -> None:
    """The same for an attempt that has failed: what it left is read from its context."""
    context.files_written = _keys(context.files_written, tree)
    context.files_deleted = _names(context.files_deleted, tree)
    context.files_shared = _names(context.files_shared, tree)
    context.files_missing = _names(context.files_missing, tree)


def _keys(files: Mapping[str, T], tree: str) -> dict[str, T]:
    return {name_of_file(tree, path): each for path, each in files.items()}


def _names(paths: Iterable[str], tree: str) -> list[str]:
    return [name_of_file(tree, path) for path in paths]


class MergeTools(MoreTools):
    """The tools of the feature. Apart from them: commands, which check plans with those, load no Temporal."""

    def __init__(self, root: Path) -> None:
        self._tools = {each.spec.name: each for each in (merge_tool(root), revert_tool(root))}

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        """They by name."""
        return {name: each.spec for name, each in self._tools.items()}

    @property
    def earlier(self) -> Mapping[str, ToolSpec]:
        """None: they are always there."""
        return {}

    def tool(self, name: str) -> Tool | None:
        """One, by its name."""
        return self._tools.get(name)


class Worker(InWorker):
    """The worktrees of a worker's machine."""

    feature = "worktrees"

    def __init__(self, client: Client, settings: Settings, fault: Callable[[str], None]) -> None:
        super().__init__(client, settings, fault)
        self._trees, self._tools = Trees(folder_of(settings)), MergeTools(folder_of(settings))

    def tools(self) -> MoreTools:
        """`merge_worktrees` and `revert_merge`."""
        return self._tools

    def keeps_versions(self, workspace: str) -> bool:
        """Its worktrees: what steps did there is on their branches."""
        return Path(workspace).is_relative_to(self._trees.root)

    def problems(self, plan: Plan, workspace: str) -> Sequence[Problem]:  # noqa: ARG002
        """Why the plan's steps can have no worktree here: what is looked at before any of them begins."""
        steps = [(path, step) for path, step in walk(plan) if step.worktree]
        if not steps:
            return ()
        if any(each.gives_directories() for each in self.others.in_worker):
            text = "workers with PLANS_HOST keep no worktrees: a plan may continue at another host; take it out"
            return [Problem(code="BAD_WORKTREE", step_id=path, field="worktree", message=text) for path, _ in steps]
        return ()

    def layer(self, tools: Iterable[Tool]) -> Layer:  # noqa: ARG002
        """Calls in worktrees."""
        names = ProtectedNames(self.settings.protected, source_files(self.settings.tools))
        return InTree(self._trees, names, WorkspaceRules.of(self.settings).closed)


IN_WORKER = Worker

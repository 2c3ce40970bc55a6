"""The activity `check_plan`: validates a plan against the worker's tools and returns the facts its workflow needs.

It reads the worker's tool list and settings and checks that the workspace exists; it changes nothing. The result is
recorded in history and is everything a workflow ever learns about its worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from temporalio import activity

from plansurvive.activities.feature import WorkerFeatures
from plansurvive.activities.workspace.allowed import REFUSED, WorkspaceRules
from plansurvive.activities.workspace.file_names import is_shown_as_bytes, visible
from plansurvive.activities.workspace.identity import identity_of
from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.activity_io import CheckRequest, Facts
from plansurvive.plans.definition.checks.calls import at_worker
from plansurvive.plans.definition.checks.outside import absolute_paths
from plansurvive.plans.definition.checks.validation import (
    bounded,
    calls_of,
    certain,
    input_values,
    named_tool_problems,
    problems,
)
from plansurvive.plans.definition.scopes import CallOf, walk
from plansurvive.plans.directory import MOVED, DirectoryIdentity, moved_text
from plansurvive.plans.execution.resume import base_id
from plansurvive.plans.flow.batches.split import is_split
from plansurvive.plans.flow.places import any_places
from plansurvive.plans.model import Problem, Step, ToolSpec
from plansurvive.plans.model.opaque import PLAN
from plansurvive.runtime.home_paths import home_path


@dataclass(frozen=True)
class PlanChecker:
    """The worker's tools and the settings that plans depend on."""

    tools: Mapping[str, ToolSpec]
    default_workspace: str | None = None
    rules: WorkspaceRules | None = None
    """Which directories may be workspaces; None: any."""
    strict_approvals: bool = False
    must_sign: bool = False
    """PLANS_DECISIONS=signed."""
    search_attributes: bool | Callable[[], bool] = False
    """Whether the server has ours; asked at each check if it is a function."""
    keeps_summaries: bool = False
    features: WorkerFeatures = field(default_factory=WorkerFeatures)
    own_files: bool = False
    """A feature gives each plan a directory of its own (`InWorker.gives_directories`)."""

    @activity.defn(name="check_plan", no_thread_cancel_exception=True)
    def check_plan(self, request: CheckRequest) -> Facts:
        """All problems of a plan on this worker, and the facts for its run."""
        if request.plan is None:
            return self._facts(request, [], self.tools, self._workspace(request, None))
        plan = request.plan
        queue = request.queue or plan.queue
        here, calls, elsewhere = list[Step](), list[CallOf](), set[str]()
        for path, step in walk(plan):
            if (step.queue or plan.queue) == queue:
                here.append(step)
                calls += calls_of(step, path[: -len(step.id)])
            else:
                elsewhere.add(path)
        wrong = certain(problems(plan, self.tools, elsewhere, language=self.features.language))
        wrong += named_tool_problems(plan, self.tools, self.features.language, elsewhere)
        wrong = [at_worker(problem) if problem.code == "UNKNOWN_TOOL" else problem for problem in wrong]
        wrong += input_values(plan, request.inputs)[1]
        workspace, trouble = self._workspace(request, plan.workspace)
        wrong += [] if trouble else self.features.problems(plan, workspace)
        if not trouble and not self.own_files:
            own = [call for call in calls if call.path not in elsewhere]
            wrong += absolute_paths(own, [workspace, str(request.workspace or plan.workspace or workspace)])
        wrong += [problem for check in self.features.checks for problem in check(plan)]
        called = dict.fromkeys([call.tool for call in calls])
        called |= dict.fromkeys(PLAN for step in here if step.for_each and is_split(step.for_each))
        named = {name: self.tools[name] for name in called if name in self.tools}
        return self._facts(request, wrong, self.tools if request.all_tools else named, (workspace, trouble))

    def _facts(
        self, request: CheckRequest, wrong: list[Problem], tools: Mapping[str, ToolSpec],
        found: tuple[str, list[Problem]],
    ) -> Facts:  # fmt: skip
        workspace, trouble = found
        loops = [step for _, step in walk(request.plan) if step.for_each is not None] if request.plan else []
        directories = dict[str, DirectoryIdentity]()
        if not trouble and not (self.own_files and request.queue is None):  # there a plan gets a directory of its own
            directories[""] = identity_of(workspace)
            trouble = _moved(request, directories[""])
        return Facts(
            problems=bounded(wrong + trouble),
            tools={name: self.features.described(spec) for name, spec in tools.items()},  # as it is at this moment
            all_tools=request.all_tools,
            workspace=workspace,
            directories=directories,
            strict_approvals=self.strict_approvals,
            must_sign=self.must_sign,
            search_attributes=self.search_attributes() if callable(self.search_attributes) else self.search_attributes,
            keeps_summaries=self.keeps_summaries,
            places=request.plan is None or request.all_tools or any_places(loops),
            own_files=self.own_files and request.queue is None,
            features=list(self.features.names),
            parts=self.features.facts(request),
        )

    def _workspace(self, request: CheckRequest, own: str | None) -> tuple[str, list[Problem]]:
        """The workspace and its problems. For steps bound to a queue or a host, the setting of its worker wins."""
        bound = self.default_workspace if request.queue is not None or self.own_files else None
        name = bound or request.workspace or own or self.default_workspace
        if not name:
            return "", [_bad("no workspace is set; pass --workspace, or set PLANS_WORKSPACE on the worker")]
        path = home_path(name)
        if not path.is_absolute():
            path = Path(self.default_workspace or Path.cwd()) / path
        if trouble := _trouble(path):
            return visible(str(path.resolve())), [_bad(trouble)]
        refused = self.rules.refusal(str(path), _granted(request)) if self.rules else ""
        return str(path.resolve()), [_bad(refused, REFUSED)] if refused else []


def _granted(request: CheckRequest) -> list[str]:
    """What the person who starts the plan grants; a client that does not say so grants the workspace it names."""
    if request.granted is not None:
        return request.granted
    return [str(home_path(request.workspace))] if request.workspace else []


def _moved(request: CheckRequest, present: DirectoryIdentity) -> list[Problem]:
    """The problem of a workspace that is known as another directory than the one that is there."""
    known = request.directory
    if known is None or known.is_same(present):
        return []
    plan_id = request.plan.id if request.plan is not None and request.plan.id else "ID"
    return [_bad(moved_text(known.path, base_id(plan_id)), MOVED)]


def _trouble(path: Path) -> str:
    if is_shown_as_bytes(str(path.resolve())):
        return f"the path of workspace {shown(str(path))} is not UTF-8; rename the directory, or pass another"
    if not path.exists():
        return f"workspace '{path}' does not exist on the worker; create it, or pass another with --workspace"
    if not path.is_dir():
        return f"workspace '{path}' is not a directory; pass the directory the plan should work in"
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return f"the worker cannot write to workspace '{path}'; fix its permissions, or pass another with --workspace"
    return ""


def _bad(message: str, code: str = "BAD_WORKSPACE") -> Problem:
    return Problem(code=code, field="workspace", message=message)

"""The activity `check_plan`: a worker judges a plan by its own tools and tells the workflow what it must know.

It reads the worker's tool list and settings and looks whether the workspace is there; it changes nothing. What it
returns is recorded in history, and is all a workflow ever learns about its worker.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from temporalio import activity

from plans.activity_io import CheckRequest, Facts
from plans.definition.validation import bounded, input_values, problems
from plans.model import Problem, ToolSpec


@dataclass(frozen=True)
class PlanChecker:
    """A worker's tools and settings, as far as plans depend on them."""

    tools: Mapping[str, ToolSpec]
    default_workspace: str | None = None
    strict_approvals: bool = False
    search_attributes: bool = False
    keeps_summaries: bool = False

    @activity.defn(name="check_plan")
    def check_plan(self, request: CheckRequest) -> Facts:
        """Every problem of a plan on this worker, and the facts its run will go by."""
        if request.plan is None:
            return self._facts(request, [], self.tools)
        plan = request.plan
        queue = request.queue or plan.queue
        here = [step for step in plan.steps if (step.queue or plan.queue) == queue]
        found = problems(plan, self.tools, {step.id for step in plan.steps} - {step.id for step in here})
        found += input_values(plan, request.inputs)[1]
        named = {step.tool: self.tools[step.tool] for step in here if step.tool in self.tools}
        return self._facts(request, found, self.tools if request.all_tools else named, plan.workspace)

    def _facts(
        self, request: CheckRequest, found: list[Problem], tools: Mapping[str, ToolSpec], own: str | None = None
    ) -> Facts:
        workspace, trouble = self._workspace(request.workspace or own, request.queue is not None)
        return Facts(
            problems=bounded(found + trouble),
            tools=dict(tools),
            all_tools=request.all_tools,
            workspace=workspace,
            strict_approvals=self.strict_approvals,
            search_attributes=self.search_attributes,
            keeps_summaries=self.keeps_summaries,
        )

    def _workspace(self, asked: str | None, own_first: bool) -> tuple[str, list[Problem]]:
        """The directory, and what is wrong with it. A worker with a queue of its own has a directory of its own."""
        name = (self.default_workspace if own_first else None) or asked or self.default_workspace
        if not name:
            return "", [_bad("no workspace is named; give --workspace, or set PLANS_WORKSPACE on the worker")]
        path = Path(name).expanduser()
        if not path.is_absolute():
            path = Path(self.default_workspace or Path.cwd()) / path
        trouble = _trouble(path)
        return str(path.resolve()), [_bad(trouble)] if trouble else []


def _trouble(path: Path) -> str:
    if path.resolve() == Path("/"):
        return "the workspace cannot be the root directory; name the directory the plan is to work in"
    if not path.exists():
        return f"the workspace '{path}' does not exist on the worker; create it, or name another with --workspace"
    if not path.is_dir():
        return f"the workspace '{path}' is no directory; name the directory the plan is to work in"
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return f"the worker may not write to the workspace '{path}'; mend its permissions, or name another"
    return ""


def _bad(message: str) -> Problem:
    return Problem(code="BAD_WORKSPACE", field="workspace", message=message)

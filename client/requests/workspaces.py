"""The workspace that a command names for a plan or an agent, checked by the rules of this machine's worker; and which
steps of a plan will ask when it runs there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from plansurvive.activities.workspace.allowed import REFUSED, WorkspaceRules
from plansurvive.activities.workspace.file_names import is_shown_as_bytes
from plansurvive.activities.workspace.paths import shown
from plansurvive.client.feature import language
from plansurvive.client.plan_file import PlanFile
from plansurvive.plans.definition.checks.outside import absolute_paths, closed_addresses
from plansurvive.plans.definition.checks.validation import calls_of
from plansurvive.plans.definition.checks.will_ask import Asking, Ground, will_ask
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.errors import PlanError
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.plans.model import Plan, Problem, ToolSpec
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.settings import Settings


def named(flag: str | None, settings: Settings, *, local: bool) -> str | None:
    """The directory of `--workspace`, else PLANS_WORKSPACE, else the current one; None: the worker's own.

    `local`: the worker shares this machine's directories. Raises PlanError BAD_WORKSPACE, WORKSPACE_REFUSED.
    """
    if flag is None and not local:
        return None
    path = home_path(flag) if flag is not None else settings.workspace or Path.cwd()
    return checked(path, "--workspace", [str(path.absolute())], settings) if local else str(path)


def directory_of(file: PlanFile, plan: Plan, flag: str | None, settings: Settings) -> Path:
    """The directory that a plan will work in on this machine, as `named` and the plan say; not checked."""
    if flag is None and plan.workspace is not None:
        return file.directory / home_path(plan.workspace)
    return home_path(flag) if flag is not None else settings.workspace or Path.cwd()


def own_workspace_problems(file: PlanFile, workspace: str, settings: Settings) -> list[Problem]:
    """The problem of the workspace that a plan names, if a worker on this machine would refuse it."""
    path = file.directory / home_path(workspace)
    refused = WorkspaceRules.of(settings).refusal(str(path), [str(file.directory)])
    return [Problem(code=REFUSED, field="workspace", message=refused)] if refused else []


def out_of_reach(plan: Plan, tools: Mapping[str, ToolSpec], workspace: Path) -> list[Problem]:
    """Warnings about absolute paths outside this workspace, and addresses that are not public.

    A worker's workspace and settings may be others: it refuses the plan, or the request, by its own.
    """
    calls = [call for path, step in walk(plan) for call in calls_of(step, path[: -len(step.id)])]
    spelt = [str(workspace.absolute()), str(workspace.resolve())]
    return [*absolute_paths(calls, spelt, "warning"), *closed_addresses(calls, tools, plan.inputs)]


def asking_in(
    plan: Plan,
    workspace: Path,
    tools: Mapping[str, ToolSpec],
    settings: Settings,
    *,
    approve_all: bool = False,
    unwaived: str = "",
) -> list[Asking]:
    """The steps of a plan that will wait for a person when it runs in a directory of this machine.

    `unwaived`: what waives nothing in it, beside the settings.
    """
    from plansurvive.activities.provenance.shell_writes import (
        written_by_shell,  # lazily: most commands need no parser of shells
    )

    ground = Ground(
        tools=tools,
        exists=lambda name: os.path.lexists(workspace / name),
        written_by_shell=written_by_shell,
        names=ProtectedNames(settings.protected),
        strict=bool(unwaived) or settings.approvals == "strict",
        rule=unwaived or "PLANS_APPROVALS=strict",
        signed=settings.decisions == "signed",
        language=language(),
    )
    return will_ask(plan, ground, approve_all=approve_all)


def checked(path: Path, where: str, granted: Sequence[str], settings: Settings) -> str:
    """The real path of a workspace on this machine; `where` it was named. Raises as `named` does."""
    if not path.is_dir():
        raise PlanError(f"{where}: {path} is not a directory; create it or choose another", "BAD_WORKSPACE")
    if is_shown_as_bytes(str(path.resolve())):
        text = f"{where}: the path {shown(str(path))} is not UTF-8; rename the directory or choose another"
        raise PlanError(text, "BAD_WORKSPACE")
    if refused := WorkspaceRules.of(settings).refusal(str(path), granted):
        raise PlanError(refused, REFUSED)
    return str(path.resolve())

"""From a plan file and flags to what is sent: the plan checked, inputs typed, the workspace made absolute.

What is wrong is told here, all at once and before anything is started: PlanRefused, exit code 2. A tool that this
machine does not know is no mistake as long as another machine's worker may know it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from client.cli.session import who
from client.errors import PlanRefused
from client.local_tools import known_tools
from client.plan_file import PlanFile, check, load
from plans.definition.validation import errors, input_values
from plans.errors import PlanError
from plans.model import Plan, Problem
from plans.run import Options
from runtime.settings import Settings


@dataclass(frozen=True)
class Flags:
    """What `run` and `start` were told besides the file."""

    workspace: str | None
    yes: bool
    max_parallel: int | None
    review: bool
    inputs: tuple[str, ...]
    id: str | None


@dataclass(frozen=True)
class Request:
    """A plan that may be started."""

    file: PlanFile
    plan: Plan
    flags: Flags
    inputs: dict[str, Any]
    unknown_tools: list[Problem]
    """Steps whose tools this machine does not know."""
    warnings: list[Problem]

    def options(self, settings: Settings, *, local: bool) -> Options:
        """How to run it. `local`: the worker shares this machine's directories."""
        return Options(
            workspace=_workspace(self, settings, local),
            max_parallel=self.flags.max_parallel,
            approve_all=self.flags.yes,
            review=self.flags.review,
            inputs=self.inputs,
            by=who(),
        )


def prepare(file: str, flags: Flags, settings: Settings) -> Request:
    """Read and check. Raises PlanRefused, PlanFileError, PlanError."""
    found = load(file)
    plan, problems = check(found.data, known_tools(settings))
    if plan is None:
        raise PlanRefused(problems, found)
    inputs = _inputs(plan, flags.inputs)
    problems = problems + input_values(plan, inputs)[1]
    unknown = [problem for problem in problems if problem.code == "UNKNOWN_TOOL"]
    if len(errors(problems)) > len(unknown):
        raise PlanRefused(problems, found)
    warnings = [problem for problem in problems if problem.severity == "warning"]
    return Request(found, plan, flags, inputs, unknown, warnings)


def _inputs(plan: Plan, given: Sequence[str]) -> dict[str, Any]:
    """`name=value` pairs; a value is read as JSON where the plan declares another type than string."""
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise PlanError(f"--input {pair!r} is not NAME=VALUE", "BAD_INPUT")
        if name in found:
            raise PlanError(f"--input {name} is given twice; keep one of them", "BAD_INPUT")
        declared = plan.inputs.get(name)
        found[name] = text if declared is None or declared.type == "string" else _value(text)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _workspace(request: Request, settings: Settings, local: bool) -> str | None:
    """--workspace; else the plan's own, from the file's directory; else PLANS_WORKSPACE; else this directory."""
    named, own = request.flags.workspace, request.plan.workspace
    if named is None and own is None:
        return str(settings.workspace or Path.cwd()) if local else None
    path = Path(named).expanduser() if named is not None else request.file.directory / Path(own or "").expanduser()
    if local and not path.is_dir():
        where = "--workspace" if named is not None else f"workspace of {request.file.name}"
        raise PlanError(f"{where}: {path} is no directory; create it or name another", "BAD_WORKSPACE")
    return str(path.resolve()) if local else str(path)

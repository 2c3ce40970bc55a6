"""Turns a plan file and flags into a start request: checks the plan, parses inputs, resolves the workspace.

All problems are reported together, before anything starts: PlanRefused, exit code 2. A tool unknown on this machine is
only a warning if the worker runs on another machine, which may have it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from temporalio.client import Client

from plansurvive.client import ids
from plansurvive.client.errors import PlanRefused
from plansurvive.client.feature import Choice, content_of, is_of_workers, rules_of_features
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import PlanFile, check, load
from plansurvive.client.priority import fairness_of
from plansurvive.client.requests.workspaces import checked, directory_of, named
from plansurvive.plans.definition.checks.validation import errors, input_values
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Plan, Problem
from plansurvive.plans.model.parts import Part
from plansurvive.plans.model.shares import Fairness
from plansurvive.plans.run import Options
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.settings import Settings


@dataclass(frozen=True)
class Flags:
    """Options of `plan run` and `plan start`."""

    workspace: str | None
    yes: bool
    max_parallel: int | None
    review: bool
    inputs: tuple[str, ...]
    id: str | None
    values: Mapping[str, Any] = field(default_factory=dict)
    """Values of inputs that are not texts of a command line."""
    priority: int | None = None
    fairness: str | None = None
    """`KEY` or `KEY=WEIGHT`."""
    timeout: float | None = None
    """Seconds that the plan may take; None: as it says itself."""
    choices: Sequence[Choice] = ()
    """What features make of their own options."""


@dataclass(frozen=True)
class Request:
    """A checked plan, ready to start."""

    file: PlanFile
    plan: Plan
    flags: Flags
    inputs: dict[str, Any]
    unknown_tools: list[Problem]
    """Steps with tools unknown on this machine."""
    warnings: list[Problem]
    content: Mapping[str, Part] = field(default_factory=dict)
    """What features pass on of what the plan names, as a person has read it (`client.feature.Content`)."""
    parts: dict[str, Any] = field(default_factory=dict)
    """What features pass on to the run with its options."""

    async def chosen(self, client: Client | None, say: Callable[[str], None]) -> dict[str, Part]:
        """The parts of the options that were chosen with options of features; `client` and `say` as in `Choice`."""
        title = self.plan.title or self.file.title
        made = [await choice(client, title, say) for choice in self.flags.choices]
        return {part.feature: part for part in made if part is not None}

    def options(
        self, settings: Settings, *, local: bool, by: str, chosen: Mapping[str, Part] = MappingProxyType({}),
        unread: bool = False, vouched: bool | None = None,
    ) -> Options:  # fmt: skip
        """The options of the run. `local`: the worker shares this machine's directories. `by`: who starts it. `chosen`:
        see there. `unread`: no person has read the plan. `vouched`: a page's login vouches for who starts it."""
        own = self.flags.workspace is None and self.plan.workspace is not None
        return Options(
            workspace=self._own_workspace(settings, local)
            if own
            else named(self.flags.workspace, settings, local=local),
            granted=[str(self.file.directory)] if own else None,
            max_parallel=self.flags.max_parallel,
            priority=self.flags.priority,
            fairness=_fairness(self.flags.fairness),
            timeout=self.flags.timeout,
            approve_all=self.flags.yes,
            review=self.flags.review,
            inputs=self.inputs,
            by=by,
            vouched=vouched,
            parts={**self.parts, **({} if unread else self.content), **chosen},
        )

    def _own_workspace(self, settings: Settings, local: bool) -> str:
        """The plan's own workspace, relative to its file. The directory of the file is all that the person grants."""
        directory = self.file.directory
        path = directory / home_path(self.plan.workspace or "")
        return checked(path, f"workspace of {self.file.name}", [str(directory)], settings) if local else str(path)


def _fairness(text: str | None) -> Fairness | None:
    try:
        return fairness_of(text)
    except ValueError:
        raise PlanError("write --fairness KEY or KEY=WEIGHT, the weight between 0.001 and 1000", "BAD_USAGE") from None


def prepare(file: str, flags: Flags, settings: Settings) -> Request:
    """Read and check a plan file. Raises PlanRefused, PlanFileError, PlanError."""
    return prepared(load(file), flags, settings)


def prepared(found: PlanFile, flags: Flags, settings: Settings) -> Request:
    """Check a plan file that was read. Raises PlanRefused, PlanError."""
    if flags.id is not None:
        ids.checked(flags.id)  # before a server is asked, or started
    tools = known_tools(settings)
    plan, problems = check(found.data, tools)
    if plan is None:
        raise PlanRefused(problems, found)
    inputs = {**_inputs(plan, flags.inputs), **flags.values}
    place = directory_of(found, plan, flags.workspace, settings)
    of_content, content = content_of(plan, tools, place, settings.state_dir)
    problems = problems + input_values(plan, inputs)[1] + of_content
    unknown = [problem for problem in problems if is_of_workers(problem)]
    if len(errors(problems)) > len(unknown):
        raise PlanRefused(problems, found)
    warnings = [*(problem for problem in problems if problem.severity == "warning"), *_empty(plan, inputs)]
    parts = rules_of_features().parts_for_start(plan, tools)
    return Request(found, plan, flags, inputs, unknown, warnings, content, parts)


def _empty(plan: Plan, inputs: Mapping[str, Any]) -> Iterator[Problem]:
    """Warnings about empty texts for inputs that must be given: mostly a variable of a shell that was not set."""
    for name, declared in plan.inputs.items():
        if declared.type == "string" and declared.default is None and inputs.get(name) == "":
            text = (
                f"the input '{name}' is an empty text; if that is not meant, pass another, such as --input {name}=TEXT"
            )
            yield Problem(code="BAD_INPUT", field=f"inputs.{name}", message=text, severity="warning")


def _inputs(plan: Plan, given: Sequence[str]) -> dict[str, Any]:
    """Parse `name=value` pairs; a value is parsed as JSON unless the plan declares it a string."""
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise PlanError(f"--input {pair!r} is not NAME=VALUE", "BAD_INPUT")
        if name in found:
            raise PlanError(f"--input {name} is given twice; pass it once", "BAD_INPUT")
        declared = plan.inputs.get(name)
        found[name] = text if declared is None or declared.type == "string" else _value(text)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text

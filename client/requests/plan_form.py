"""What a person wants to start: a file, a template or a text, checked, with a form for its inputs and what will ask.

Only below the directories that the page was started with; any path would let an operator of a team's page read the
machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import FormData

from plansurvive.client.access.forms import text_of
from plansurvive.client.errors import PlanRefused
from plansurvive.client.feature import library
from plansurvive.client.forms.inputs import Filled, Sent, filled, sent_of
from plansurvive.client.local_tools import known_tools
from plansurvive.client.plan_file import PlanFile, check, load
from plansurvive.client.requests.plan_request import Flags, Request, prepared
from plansurvive.client.requests.roots import Roots
from plansurvive.client.requests.time_spans import time_limit
from plansurvive.client.requests.workspaces import asking_in, directory_of
from plansurvive.plans.definition.checks.will_ask import Asking, waived
from plansurvive.plans.definition.parsing import MAX_BYTES, Unreadable
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.model import Plan, Problem
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.plan_files.text import data_of
from plansurvive.runtime.settings import Settings

PASTED = "<pasted>"


@dataclass(frozen=True)
class Source:
    """Where the plan is from, as a form names it: exactly one of the three."""

    file: str = ""
    template: str = ""
    text: str = ""

    @property
    def label(self) -> str:
        """What it is, for people."""
        return self.file or self.template or "the pasted plan"

    def read(self, settings: Settings) -> PlanFile:
        """The plan, parsed but not checked. Raises PlanError, InvalidPlan."""
        roots = Roots.of(settings)
        if self.file:
            return load(str(roots.file(self.file)))
        if self.template:
            found = library().find(self.template, roots.paths[0], settings.state_dir)
            return PlanFile(found.label, found.text, found.data, roots.paths[0].resolve(), found.name)
        return pasted(self.text, roots.paths[0])


@dataclass(frozen=True)
class Choices:
    """What a person chose and typed beside the plan."""

    inputs: Sent = ()
    """What was typed into the fields of inputs."""
    workspace: str = ""
    id: str = ""
    max_parallel: str = ""
    review: bool = False
    yes: bool = False
    timeout: str = ""

    def flags(self, roots: Roots, plan: Plan | None, default: str = "") -> Flags:
        """As options of a command. `default`: the workspace if none was typed (`workspace_of`).

        Raises OutsideRoots, PlanError BAD_USAGE.
        """
        values = dict(filled(plan.inputs, self.inputs).values) if plan is not None else {}
        parallel = self.max_parallel.strip()
        if parallel and not (parallel.isascii() and parallel.isdigit() and 1 <= int(parallel) <= 100):
            raise PlanError("steps at the same time: a number from 1 to 100", "BAD_USAGE")
        workspace = roots.workspace(self.workspace) or default or None
        return Flags(
            workspace, self.yes, int(parallel) if parallel else None, self.review, (),
            self.id.strip() or None, values, timeout=time_limit_of(self.timeout),
        )  # fmt: skip


def time_limit_of(typed: str) -> float | None:
    """What was typed as a plan's time limit, in seconds. Raises PlanError BAD_USAGE."""
    try:
        return time_limit(typed.strip())
    except ValueError as error:
        raise PlanError(f"time limit: {error}", "BAD_USAGE") from None


def source_of(form: FormData) -> Source:
    """Where the plan of a form is from. Line ends are LF: browsers send CRLF."""
    file, template = text_of(form, "file"), text_of(form, "template")
    return Source(file=file, template=template, text=text_of(form, "text").replace("\r\n", "\n"))


def choices_of(form: FormData) -> Choices:
    """What was chosen and typed beside the plan."""
    return Choices(
        tuple(sent_of(form.multi_items())), text_of(form, "workspace"), text_of(form, "id"),
        text_of(form, "maxParallel"), bool(text_of(form, "review")), bool(text_of(form, "yes")),
        text_of(form, "timeout"),
    )  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """A plan as the page shows it before it is started."""

    source: Source
    file: PlanFile | None
    plan: Plan | None
    problems: list[Problem]
    asking: list[Asking]
    waives: list[str]
    inputs: Filled
    """The form of its inputs."""
    workspace: str = ""
    """Where it works if no other directory is named."""
    refused: PlanError | None = None
    """Why what was chosen beside the plan cannot be."""

    def line(self, problem: Problem) -> int | None:
        """The line of the text that a problem is about, if it is known."""
        return self.file.line(problem) if self.file is not None else None

    @property
    def has_errors(self) -> bool:
        """Whether it cannot be started."""
        return self.plan is None or any(each.severity == "error" for each in self.problems)


def checked(source: Source, choices: Choices, settings: Settings) -> Checked:
    """Read and check a plan, as `plan check` does. Raises PlanError for what cannot be read at all."""
    try:
        file = source.read(settings)
    except InvalidPlan as error:
        return Checked(source, None, None, list(error.problems), [], [], Filled([]))
    tools = known_tools(settings)
    plan, problems = check(file.data, tools)
    inputs = filled(plan.inputs, choices.inputs) if plan is not None else Filled([])
    asking: list[Asking] = []
    refused: PlanError | None = None
    default = workspace_of(source, file, plan, settings)
    if plan is not None and not any(each.severity == "error" for each in problems):
        try:
            flags = choices.flags(Roots.of(settings), plan, default)
            place = directory_of(file, plan, flags.workspace, settings)
            asking = asking_in(plan, place, tools, settings, approve_all=choices.yes)
        except PlanError as error:
            refused = error
    waives = waived(plan) if plan is not None else []
    own = str(file.directory / home_path(plan.workspace)) if plan is not None and plan.workspace is not None else ""
    shown = own or default or str(Roots.of(settings).paths[0])
    return Checked(source, file, plan, problems, asking, waives, inputs, shown, refused)


def requested(source: Source, choices: Choices, settings: Settings) -> Request:
    """The plan with its inputs, ready to start. Raises PlanRefused with every problem, PlanError."""
    file = source.read(settings)
    plan, problems = check(file.data, known_tools(settings))
    if plan is None:
        raise PlanRefused(problems, file)
    wrong = filled(plan.inputs, choices.inputs).problems
    if wrong:
        raise PlanRefused([*problems, *wrong], file)
    default = workspace_of(source, file, plan, settings)
    return prepared(file, choices.flags(Roots.of(settings), plan, default), settings)


def workspace_of(source: Source, file: PlanFile, plan: Plan | None, settings: Settings) -> str:
    """The directory of a plan file, where its steps work unless the plan or PLANS_WORKSPACE names another; else empty.

    On a command line that is the current directory; whoever is at the page does not know that of its server.
    """
    named = settings.workspace is not None or (plan is not None and plan.workspace is not None)
    return str(file.directory) if source.file and not named else ""


def pasted(text: str, directory: Path) -> PlanFile:
    """A text as a plan file of a directory, from which its own workspace counts. Raises InvalidPlan."""
    if len(text.encode()) > MAX_BYTES:
        raise InvalidPlan([Problem(code="PLAN_TOO_LARGE", message=f"the text is larger than {MAX_BYTES:,} bytes")])
    try:
        return PlanFile(PASTED, text, data_of(PASTED, text), directory)
    except Unreadable as error:
        raise InvalidPlan([error.problem]) from None

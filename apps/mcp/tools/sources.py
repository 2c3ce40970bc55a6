"""The plan that an agent names: an object or a text, a file, a template; checked as `plan check` does.

Files and workspaces are those below the directories that the server was started with (`client.requests.roots`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from plansurvive.apps.mcp.common.host import Forbidden
from plansurvive.client.plan_file import PlanFile, load
from plansurvive.client.requests.plan_request import Flags, Request, prepared
from plansurvive.client.requests.roots import Roots
from plansurvive.features.templates.known import Known, plan_file_of
from plansurvive.plans.definition.parsing import MAX_BYTES, Unreadable
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.model import Problem
from plansurvive.plans.model.opaque import PLAN
from plansurvive.runtime.plan_files.text import data_of
from plansurvive.runtime.settings import Settings

PlanGiven = Annotated[
    dict[str, Any] | str | None,
    Field(description="The plan: an object, or its text in JSON or YAML. Give this, `file` or `template`."),
]
FileGiven = Annotated[
    str | None, Field(max_length=4_096, description="Path of a plan file below the directories of this server.")
]
TemplateGiven = Annotated[str | None, Field(max_length=300, description="Name of a saved template, or NAME@VERSION.")]
InputsGiven = Annotated[dict[str, Any] | None, Field(description="Values of the plan's inputs, by name.")]
Workspace = Annotated[
    str | None, Field(max_length=4_096, description="Directory that the tools work in; none: the server's own.")
]

GIVEN = "<given>"
"""The name of a plan that was passed in, where a file has its path."""


@dataclass(frozen=True)
class Source:
    """Where the plan is from: exactly one of the three."""

    plan: dict[str, Any] | str | None = None
    file: str | None = None
    template: str | None = None

    def read(self, settings: Settings) -> PlanFile:
        """The plan, parsed but not checked. Raises PlanError, InvalidPlan, OutsideRoots."""
        if sum(each is not None for each in (self.plan, self.file, self.template)) != 1:
            raise PlanError("pass exactly one of `plan`, `file` and `template`", "BAD_USAGE")
        roots = Roots.of(settings)
        if self.file is not None:
            return load(str(roots.file(self.file)))
        if self.template is not None:
            place = str(roots.paths[0])
            return plan_file_of(Known.of(settings, place).find(self.template), settings, place)
        text = self.plan if isinstance(self.plan, str) else _text(self.plan)
        if len(text.encode(errors="replace")) > MAX_BYTES:
            raise InvalidPlan([Problem(code="PLAN_TOO_LARGE", message=f"the plan is larger than {MAX_BYTES:,} bytes")])
        try:
            return PlanFile(GIVEN, text, data_of(GIVEN, text), roots.paths[0])
        except Unreadable as error:
            raise InvalidPlan([error.problem]) from None


@dataclass(frozen=True)
class Chosen:
    """What an agent chooses beside the plan."""

    values: Mapping[str, Any]
    workspace: str | None = None
    id: str | None = None
    max_parallel: int | None = None
    review: bool = False
    timeout: float | None = None


def requested(source: Source, chosen: Chosen, settings: Settings) -> Request:
    """A checked plan, ready to start. Raises PlanRefused with every problem, PlanError."""
    workspace = Roots.of(settings).workspace(chosen.workspace or "")
    if len(_text(chosen.values).encode(errors="replace")) > MAX_BYTES:
        raise PlanError(f"the inputs are larger than {MAX_BYTES:,} bytes; put the data into files", "BAD_INPUT")
    flags = Flags(
        workspace, False, chosen.max_parallel, chosen.review, (), chosen.id, chosen.values, timeout=chosen.timeout
    )
    wanted = prepared(source.read(settings), flags, settings)
    if not source.template:
        refuse_other_queues(wanted.file.data, settings)
    return wanted


def _text(data: Any) -> str:
    """Data as JSON. Raises InvalidPlan if it is nested too deep for that."""
    try:
        return json.dumps(data, ensure_ascii=False)
    except RecursionError:
        raise InvalidPlan([Problem(code="PLAN_TOO_DEEP", message="the data is nested too deep")]) from None


def refuse_other_queues(data: Any, settings: Settings) -> None:
    """Raise Forbidden for steps on workers that the server was not started for: an LLM may not choose those either."""
    others = [name for name in _queues(data) if name != settings.task_queue]
    if others:
        text = (
            f"an agent may not choose a task queue ({', '.join(others[:10])[:500]}); leave `queue` out, or ask a person"
        )
        raise Forbidden(f"{text} to save the plan as a template")


def _queues(data: Any) -> Iterator[str]:
    """The task queues that a plan names, for itself, for steps, and for steps in the arguments of the tool `plan`."""
    if isinstance(data, list):
        for each in data:
            yield from _queues(each)
    elif isinstance(data, Mapping):
        if isinstance(data.get("queue"), str):
            yield data["queue"]
        for name, value in data.items():
            if name != "args" or data.get("tool") == PLAN:
                yield from _queues(value)

"""The plan that an agent names: an object or a text, a file, a template; checked as `plan check` does.

Files and workspaces are those below the directories that the server was started with (`client.requests.roots`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from client.plan_file import PlanFile, load
from client.requests.plan_request import Flags, Request, prepared
from client.requests.roots import Roots
from client.templates.known import Known, plan_file_of
from plans.definition.parsing import MAX_BYTES, Unreadable
from plans.errors import InvalidPlan, PlanError
from plans.model import Problem
from runtime.plan_files.text import data_of
from runtime.settings import Settings

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
        text = self.plan if isinstance(self.plan, str) else json.dumps(self.plan, ensure_ascii=False)
        if len(text.encode(errors="replace")) > MAX_BYTES:
            raise InvalidPlan([Problem(code="PLAN_TOO_LARGE", message=f"the plan is larger than {MAX_BYTES:,} bytes")])
        try:
            return PlanFile(GIVEN, text, data_of(GIVEN, text), roots.paths[0])
        except Unreadable as error:
            raise InvalidPlan([error.problem]) from None


@dataclass(frozen=True)
class Inputs:
    """What an agent chooses beside the plan."""

    values: Mapping[str, Any]
    workspace: str | None = None
    id: str | None = None
    max_parallel: int | None = None
    review: bool = False


def requested(source: Source, chosen: Inputs, settings: Settings) -> Request:
    """A checked plan, ready to start. Raises PlanRefused with every problem, PlanError."""
    workspace = Roots.of(settings).workspace(chosen.workspace or "")
    flags = Flags(workspace, False, chosen.max_parallel, chosen.review, (), chosen.id, chosen.values)
    return prepared(source.read(settings), flags, settings)

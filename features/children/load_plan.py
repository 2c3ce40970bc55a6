"""The activity `load_plan`: reads the plan file or the template that a step names.

A file is reached through the workspace alone, by the rules of read_file, and parsed as strictly as the command line
does. What is loaded is recorded in the plan's history with its hash: a later change of the file changes nothing.

Loaded when the step is ready, as an earlier step may write the file; its hash is part of the approval's digest.
Rejected: sending all files with the plan.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.workspace.contents import read_head
from plansurvive.features.children.model import LoadedPlan, LoadRequest
from plansurvive.plans.definition.parsing import Unreadable
from plansurvive.plans.errors import InvalidPlan, PlanError, ToolError
from plansurvive.runtime.plan_files.library import Library
from plansurvive.runtime.plan_files.text import data_of, text_of

MAX_BYTES = 512 * 1024
"""Longest plan file that runs as a step: its content is in the parent's history."""


@dataclass(frozen=True)
class PlanLoader:
    """The activity, with the rules of this worker."""

    state_dir: Path | None = None
    """Where the templates of the user are."""
    site: ToolEnvironment = field(default_factory=ToolEnvironment)
    library: Library = field(default_factory=Library)
    """Where plans are found by name."""

    @activity.defn(name="load_plan", no_thread_cancel_exception=True)
    def load_plan(self, request: LoadRequest) -> LoadedPlan:
        """The content of a plan. Raises ApplicationError with a code, not retryable."""
        try:
            return self.loaded(request)
        except PlanError as error:
            raise ApplicationError(error.message[:4_000], type=error.code, non_retryable=True) from None

    def loaded(self, request: LoadRequest) -> LoadedPlan:
        """As `load_plan`. Raises ToolError (NOT_FOUND, PATH_OUTSIDE, ...), InvalidPlan, and as `Library.find`."""
        self.site.check(request.workspace, request.directory, request.plan_id)
        if request.template is not None:
            found = self.library.find(request.template, request.workspace, self.state_dir)
            _check_size(found.label, len(found.text.encode()))
            return LoadedPlan(source=found.label, sha256=found.hash, data=found.data)
        path = request.file or ""
        with self.site.workspace(request.workspace, request.directory, request.plan_id).file(path) as place:
            content = read_head(place, MAX_BYTES + 1)
            _check_size(path, place.status.st_size if place.status else len(content))
        try:
            data = data_of(path, text_of(content))
        except Unreadable as error:
            raise InvalidPlan([error.problem]) from None
        return LoadedPlan(source=path, sha256=hashlib.sha256(content).hexdigest(), data=data)


def _check_size(name: str, size: int) -> None:
    if size > MAX_BYTES:
        text = f"{name} has {size:,} bytes; a plan that runs as a step has at most {MAX_BYTES:,}: split it"
        raise ToolError("PLAN_TOO_LARGE", text)

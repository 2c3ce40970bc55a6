"""Checks what a plan file runs as steps: the plan files and templates that it names, and theirs in turn.

A file is resolved in the workspace, as the worker does when the step starts. What is not there yet may be written by an
earlier step: a warning. The hash of each content goes with the start: what it waives counts as long as it is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plansurvive.client.feature import Content, language, library
from plansurvive.client.plan_file import PlanFileError, load
from plansurvive.features.children.model import KnownPlans
from plansurvive.features.children.nested import content_problems, input_problems, nested
from plansurvive.plans.child_state import MAX_NESTING
from plansurvive.plans.definition.checks.validation import certain
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.expressions.references import find
from plansurvive.plans.model import Plan, Problem, Step, ToolSpec
from plansurvive.plans.model.opaque import PLAN, STEPS

MAX_CHILDREN = 200
"""Plan files and templates that are looked at."""


def content(plan: Plan, tools: Mapping[str, ToolSpec], workspace: Path, state_dir: Path | None) -> Content:
    """The problems of the plan files and templates that a plan runs, at any depth, and the hashes of their contents."""
    search = _Search(tools, workspace, state_dir)
    found = list(search.of(plan, ()))
    return Content(found, KnownPlans(sha256=search.hashes))


class _Search:
    def __init__(self, tools: Mapping[str, ToolSpec], workspace: Path, state_dir: Path | None) -> None:
        self._tools, self._workspace, self._state_dir = tools, workspace, state_dir
        self.hashes: list[str] = []
        """Of the contents, each once."""

    def of(self, plan: Plan, above: Sequence[str]) -> Iterator[Problem]:
        made = {str(step.args.get("path")) for _, step in walk(plan) if step.tool == "write_file"}
        for path, step in walk(plan):
            if step.tool != PLAN or len(self.hashes) >= MAX_CHILDREN:
                continue
            for name in ("file", "template"):
                source = step.args.get(name)
                if isinstance(source, str) and not find(source) and source not in made:
                    yield from self._named(step.model_copy(update={"id": path}), name, source, above)
            steps = step.args.get(STEPS)
            if isinstance(steps, list):
                inner = read_plan({"steps": steps})
                if isinstance(inner, Plan):
                    yield from nested(path, f"args.{STEPS}", list(self.of(inner, above)))

    def _named(self, step: Step, kind: str, source: str, above: Sequence[str]) -> Iterator[Problem]:
        try:
            data, digest = self._content(kind, source)
        except InvalidPlan as error:
            yield from nested(step.id, f"args.{kind} {source}", error.problems)
            return
        except PlanError as error:
            text = f"{error.message}; the step fails unless it is there when it starts"
            yield Problem(code=error.code, step_id=step.id, field=f"args.{kind}", message=text, severity="warning")
            return
        if digest in above or len(above) >= MAX_NESTING:
            text = f"{source} runs itself; plans are nested {MAX_NESTING} deep at most (NESTED_TOO_DEEP)"
            yield Problem(
                code="RUNS_ITSELF", step_id=step.id, field=f"args.{kind}", message=text, severity="warning"
            )  # fmt: skip
            return
        if digest not in self.hashes:
            self.hashes.append(digest)
        child, wrong = content_problems(data, self._tools, language())
        yield from nested(step.id, f"args.{kind} {source}", certain(wrong))
        if child is not None:
            yield from input_problems(step, child)
            yield from nested(step.id, f"args.{kind} {source}", list(self.of(child, (*above, digest))))

    def _content(self, kind: str, source: str) -> tuple[Any, str]:
        """The content as data, and its hash. Raises InvalidPlan, PlanFileError, and as `Library.find`."""
        if kind == "template":
            found = library().find(source, self._workspace, self._state_dir)
            return found.data, found.hash
        path = (self._workspace / source).resolve()
        if not path.is_relative_to(self._workspace.resolve()):
            raise PlanFileError(f"{source} is outside of the workspace", "PATH_OUTSIDE")
        return load(str(path)).data, hashlib.sha256(path.read_bytes()).hexdigest()

"""What is said of steps that use one that the same edits remove. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from plansurvive.plans.editing.edits import Edit, RemoveStep
from plansurvive.plans.model import Problem


def as_removed(found: Iterable[Problem], edits: Iterable[Edit]) -> list[Problem]:
    """The problems that edits would make, with what to do about those that come from the removal of a step."""
    removed = {edit.step_id.rpartition(".")[2]: edit.step_id for edit in edits if isinstance(edit, RemoveStep)}
    return [_of(problem, removed) for problem in found] if removed else list(found)


def _of(problem: Problem, removed: dict[str, str]) -> Problem:
    name = removed.get(problem.name)
    if name is None:
        return problem
    user = f"step '{problem.step_id}'" if problem.step_id else f"`{problem.field}` of the plan"
    use = "waits for it" if problem.code == "UNKNOWN_DEPENDENCY" else "uses its value"
    instead = f"change or remove {user} first" if problem.step_id else "change that first"
    return problem.model_copy(update={"message": f"'{name}' cannot be removed, as {user} {use}; {instead}"})

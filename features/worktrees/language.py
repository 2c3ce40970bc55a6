"""Where `worktree` may be asked for: of a step that works on files, or a block; not inside another one.

What undoes a merge, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.features.worktrees.model import MERGE, REVERT
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.scopes import walk_step
from plansurvive.plans.model import Problem, Step, ToolSpec, Undo

CODE = "BAD_WORKTREE"
_CHANGES_NONE = frozenset(("ask", "wait_for", "sleep"))


def problems(step: Step, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:  # noqa: ARG001
    """The problems of one step."""
    if not step.worktree:
        return
    if step.tool in _CHANGES_NONE:
        text = f"{step.tool} works on no files; say `worktree` of the steps that do, or of the block around them"
        yield Problem(code=CODE, step_id=step.id, field="worktree", message=text)
    for _, inner in walk_step(step):
        if inner is not step and inner.worktree:
            text = f"'{inner.id}' is inside '{step.id}', which has a worktree; say it of one of them"
            yield Problem(code=CODE, step_id=step.id, field="worktree", message=text)


_REVERTED = Undo(tool=REVERT, args={"commits": "$value.commits", "into": "$value.into"})

LANGUAGE = Language(checks=[problems], undoes={MERGE: _REVERTED}, stays=[lambda step: bool(step.worktree)])

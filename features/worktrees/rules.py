"""In which worktree a step works, and what is known of the files there.

A worktree belongs to the nearest step or block with `worktree: true`: each item of a loop has its own, rounds of a
`repeat` share one. What a plan or agent below it does is done in it as well. A plan that continues another one
works in the worktrees of that one.

Files in a worktree have names of their own in a run, `worktree:STEP:path`: the worker returns them so, and is given
their stamps under the plain path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plansurvive.features.worktrees.model import (
    MERGE,
    OTHER,
    REVERT,
    Choice,
    WorktreeChoice,
    WorktreeConflict,
    WorktreeNote,
    WorktreeOrder,
)
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.definition import questions
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.execution.tool_history import relative
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.flow.ids import lineage
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.run import Result, Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.text.safe_text import line

MAX_STAMPS = 2_000
"""Stamps that go with a call whose path is in a value outside history."""
_ROUND = re.compile(r"#\d+\Z")


def own_tree(run: Run, step_id: str) -> str:
    """The step or block of the run in whose worktree a step works; empty: in none."""
    for name in lineage(step_id):
        found = run.step_of(name)
        if found is not None and found.worktree:
            return _ROUND.sub("", name)
    return ""


def origin_of(run: Run) -> str:
    """The plan whose id the worktrees of the run have."""
    return run.options.part(WorktreeChoice).origin or run.plan.id or ""


def order_of(run: Run, step: Step) -> WorktreeOrder | None:
    """The worktree that a step works in, without the stamps of its files; None: it works in the workspace."""
    is_inside = bool(run.opened) or run.closing is not None  # otherwise there is nothing around a step
    if tree := own_tree(run, step.id) if is_inside or step.worktree else "":
        return WorktreeOrder(plan=origin_of(run), tree=tree, step=step.id, title=_title(run, step))
    choice = run.options.known_part(WorktreeChoice)
    if choice is None or not choice.tree:
        return None
    return WorktreeOrder(plan=choice.plan, tree=choice.tree, step=choice.step, title=choice.title)


def name_of_file(tree: str, path: str) -> str:
    """The name of a file in a worktree, in stamps and records."""
    return f"worktree:{tree}:{path}"


def _title(run: Run, step: Step) -> str:
    return line(" ".join((run.description_of(step) or f"{step.tool} ({step.id})").split()))[:200]


def _stamps(run: Run, step: Step, call: Call, tree: str) -> dict[str, Stamp]:
    """The stamps of the files among a call's arguments, by path in the worktree."""
    scope = f"{step.queue}:" if step.queue and step.queue in run.facts.workspaces else ""
    scope, seen = scope + name_of_file(tree, ""), run.files.stamps
    if ["path"] in call.deferred:
        recent = [name for name in seen if name.startswith(scope)][-MAX_STAMPS:]
        return {name.removeprefix(scope): seen[name] for name in recent}
    texts = [value for value in call.args.values() if isinstance(value, str) and 0 < len(value) < 4_096]
    paths = [relative(value, call.workspace) for value in texts if "\n" not in value]
    return {path: seen[scope + path] for path in paths if scope + path in seen}


def _extend(run: Run, step: Step, call: Call) -> WorktreeOrder | None:
    order = order_of(run, step)
    if order is not None:
        return order.model_copy(update={"stamps": _stamps(run, step, call, order.tree)})
    if step.tool not in (MERGE, REVERT):
        return None
    return WorktreeOrder(plan=origin_of(run), chosen=conflict_of(run, step.id).chosen)


def conflict_of(run: Run, step_id: str) -> WorktreeConflict:
    """What is asked about a merge, and what was chosen; nothing, if that is not as our workers and we leave it."""
    try:
        return run.steps[step_id].known_part(WorktreeConflict) or WorktreeConflict()
    except ValidationError:
        return WorktreeConflict()


def _settled(run: Run, step: Step, returned: Return) -> WorktreeNote | None:
    if step.tool == MERGE:
        run.steps[step.id].keep(WorktreeConflict())
    return note_in(returned)


def _failed(run: Run, step: Step, left: Return, failure: Result, now: datetime) -> bool:  # noqa: ARG001
    """Keep what is in conflict, for the question about it."""
    if step.tool == MERGE:
        try:
            found = left.known_part(WorktreeConflict) or WorktreeConflict()
        except ValidationError:  # of an activity that was completed by hand
            found = WorktreeConflict()
        if found.question and questions.problem(found.question):
            found = WorktreeConflict()
        chosen = conflict_of(run, step.id).chosen
        run.steps[step.id].keep(found.model_copy(update={"chosen": chosen}))
    return False


def choose(run: Run, step_id: str, answer: Any) -> None:
    """Keep what the answer to the question about a merge says, for its next call."""
    found, given = conflict_of(run, step_id), answer if isinstance(answer, Mapping) else {}
    places = {place: name for name, place in found.places.items() if isinstance(given.get(name), str)}
    new = [
        Choice(place=place, take=given[name][:20], text=str(given.get(f"{name} {OTHER}") or ""))
        for place, name in places.items()
    ]
    before = [each for each in found.chosen if each.place not in places]
    run.steps[step_id].keep(WorktreeConflict(chosen=[*before, *new]))


def note_in(ended: Return) -> WorktreeNote | None:
    """What a call says of its worktree; None if it says nothing, or anything else than our workers do."""
    if WorktreeNote.feature not in ended.parts:
        return None
    try:
        return ended.part(WorktreeNote)
    except ValidationError:  # of an activity that was completed by hand
        return None


def _for_next(run: Run, rerun: bool) -> WorktreeChoice | None:  # noqa: ARG001
    if not any(step.worktree for _, step in walk(run.plan)):
        return None
    return run.options.part(WorktreeChoice).model_copy(update={"origin": origin_of(run)})


def _for_child(run: Run, step: Step, plan: Plan | None) -> WorktreeChoice | None:  # noqa: ARG001
    order = order_of(run, step)
    if order is None:
        return None
    return WorktreeChoice(plan=order.plan, tree=order.tree, step=order.step, title=order.title)


RULES = Rules("worktrees", for_next=_for_next, for_child=_for_child, extend=_extend, settled=_settled, failed=_failed)

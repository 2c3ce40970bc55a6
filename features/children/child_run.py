"""The Run that a child plan starts with, made from the step of its parent; or from the run that it resumes.

A child never has more rights than its parent: it works in the parent's workspace or below what was granted, its waivers
count only where a person wrote them, and its approvals are strict where the parent's are. It is a draft: the worker
validates it again.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from plansurvive.features.children.model import KnownPlans, LoadedUndo
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.child_state import MAX_NESTING, ChildPlan, ParentLink
from plansurvive.plans.definition.checks.validation import errors, input_values
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.execution import accounts, resume
from plansurvive.plans.execution.file_tracking import stamps_for
from plansurvive.plans.execution.undo_run import undoing, with_undos
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.flow.ids import is_inside
from plansurvive.plans.model import Plan, Problem, Step
from plansurvive.plans.model.opaque import PLAN, STEPS
from plansurvive.plans.run import Options, Run
from plansurvive.plans.run.feature import RuleSet
from plansurvive.plans.run.undone import to_undo

NESTED_TOO_DEEP = "NESTED_TOO_DEEP"
"""Code of a plan step that would run a plan deeper than MAX_NESTING, as one that runs itself does."""


def child_run(parent: Run, step: Step, data: Any, inputs: Mapping[str, Any], name: str) -> Run:
    """The Run of a new child plan with the id `name`.

    `data`: the content of its plan file. Raises InvalidPlan, and Refused (NESTED_TOO_DEEP).
    """
    if parent.parent is not None and parent.parent.depth >= MAX_NESTING:
        text = f"a plan may run plans {MAX_NESTING} deep, and this is deeper; does a plan run itself?"
        raise Refused(text, NESTED_TOO_DEEP)
    plan = read_plan(data)
    if isinstance(plan, list):
        raise InvalidPlan(plan)
    wrong = errors(input_values(plan, inputs, in_file=True)[1])
    if wrong:
        raise InvalidPlan(wrong)
    plan = plan.model_copy(update={"id": name, "task_id": None, "queue": plan.queue or parent.queue_of(step)})
    options = options_of(parent, step, plan).model_copy(update={"inputs": dict(inputs)})
    run = Run.of(plan, options, Facts(), {})
    run.parent = _link(parent, step)
    run.unsigned = parent.unsigned
    run.files.stamps = _stamps(parent, step, run.options.workspace or "")
    return run


def resumed_run(
    parent: Run, step: Step, earlier: Any, inputs: Mapping[str, Any], name: str, now: datetime, rules: RuleSet
) -> Run | None:
    """The Run that resumes the child plan of the step in the run before, keeping its done steps.

    None if there is none, if it cannot be read, or if its inputs were others: it starts over.
    """
    try:
        run = Run.model_validate(earlier) if earlier is not None else None
    except ValidationError:
        return None  # written by another version of this program
    if run is None or run.parent is None or run.options.inputs != dict(inputs):
        return None
    new = resume.continued(accounts.caught_up(run, rules, now), name, now)
    new.options = options_of(parent, step, new.plan).model_copy(update={"inputs": dict(inputs)})
    new.parent = _link(parent, step)
    new.unsigned, new.value = parent.unsigned, None
    return new


def undo_run(parent: Run, step: Step, loaded: LoadedUndo, now: datetime, *, with_tools: bool) -> Run | None:
    """The Run that undoes the steps of an ended child plan; None if nothing of it is left to undo. `with_tools`: also
    those whose tools alone say how.

    Raises pydantic's ValidationError for a Run that another version of this program wrote.
    """
    ended = Run.model_validate(loaded.run)
    ended.language = parent.language
    ended = with_undos(ended) if with_tools else ended
    if not to_undo(ended):
        return None
    new = undoing(ended, loaded.undo_id, now, yes=parent.options.approve_all)
    new.parent = _link(parent, step)
    new.unsigned, new.value = parent.unsigned, None
    return new


def _link(parent: Run, step: Step) -> ParentLink:
    """Where a child plan belongs: the step of the plan that started it."""
    above = parent.parent.depth if parent.parent else 0
    return ParentLink(plan_id=parent.plan.id or "", step_id=step.id, depth=above + 1)


def _stamps(parent: Run, step: Step, workspace: str) -> dict[str, Stamp]:
    """The files that the parent knows, by their path in the child's workspace: those it made, the child may change."""
    known, place = stamps_for(parent, step), parent.workspace_of(step)
    if workspace == place:
        return known
    below = posixpath.relpath(workspace, place) + "/"
    return {name.removeprefix(below): stamp for name, stamp in known.items() if name.startswith(below)}


def options_of(parent: Run, step: Step, plan: Plan) -> Options:
    """The options of a child plan, without its inputs and what features add."""
    place = parent.workspace_of(step)
    given = parent.options.granted
    own = posixpath.normpath(posixpath.join(place, plan.workspace)) if plan.workspace else place
    return Options(
        workspace=own,
        granted=[place, *given] if given else [place],
        approve_all=parent.options.approve_all,
        waivers=waivers_count(parent, step),
        owns=parent.owns,
        by=parent.options.by,
        history_limit=parent.options.history_limit,
        directories=directories_for(parent, step, plan.queue or parent.queue_of(step), own),
    )


def directories_for(parent: Run, step: Step, queue: str | None, workspace: str) -> dict[str, DirectoryIdentity]:
    """What a child on a queue knows of its workspace: what its parent knows, if it works where the step does."""
    known = parent.directory_of(step)
    is_there = queue == parent.queue_of(step) and workspace == parent.workspace_of(step)
    return {"": known} if known is not None and is_there else {}


def waivers_count(parent: Run, step: Step) -> bool:
    """Whether what the child plan of a step waives counts: only where the person who started the parent wrote it.

    Not in what an LLM drafted, in what was edited, in steps that another step gave, or in a file whose content was
    another one when the parent was started. `--yes` is another matter: it approves everything.
    """
    child = parent.steps[step.id].child
    if not parent.options.waivers or parent.request or step.id in parent.edited or child is None:
        return False
    is_of_loop = parent.outline.loop_of(step.id) is not None
    if is_of_loop and is_inside(step.id, parent.edited):
        return False
    if child.kind == "inline":
        is_written = step.tool != PLAN or isinstance(step.args.get(STEPS), list) or is_of_loop
        return is_written and parent.steps[step.id].args is None
    return child.sha256 in parent.options.part(KnownPlans).sha256


def place_problems(run: Run, facts: Facts) -> list[Problem]:
    """Why a child plan may not work in the workspace that the worker resolved: its parent does not reach there.

    At its plan's place at a host it works in that plan's own directory, which the worker does not resolve.
    """
    granted = run.options.granted or []
    if run.parent is None or run.is_guest or any(_is_below(facts.workspace, each) for each in granted):
        return []
    text = f"the workspace {facts.workspace!r} of a child plan is not below that of its plan, {granted[0]!r}"
    return [Problem(code="WORKSPACE_REFUSED", field="workspace", message=f"{text}; name a directory in it")]


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def described(step: Step, child: ChildPlan, plan: Plan) -> str:
    """The title of a child plan for lists and headings."""
    return plan.title or child.source or step.description or step.id

"""The run that undoes an ended plan: a Run of the same plan whose steps are over, and whose undos begin (DESIGN 2.8).

It is a plan of its own, `PLAN-undo`: approvals, retries, views and records are those of any plan. What was undone
before, by the plan's rollback or by an earlier run of this kind, is not undone again.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from plansurvive.plans.definition.scopes import FINALLY, UNDO, walk, with_bodies
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.file_tracking import readers
from plansurvive.plans.execution.resume import LEFT_OUT, run_id
from plansurvive.plans.execution.schedule import left_out, reset_to_draft
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.files.changes import FOLDER, RestoredFile, RestoredFiles
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import PlanStatus, Result, Run, Status
from plansurvive.plans.run.undone import outcomes, to_undo, undo_of, undone_steps
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.step_state import StepState

SUFFIX = "-undo"
UNDOES = "undoes plan"
"""What the entry in the log begins with that its own events follow; those before are of the plan that it undoes."""
MAX_UNDOS = 100
"""Maximum number of plans that undo one plan."""


def undo_id(plan_id: str) -> str:
    """The id of the plan that undoes a plan."""
    return plan_id + SUFFIX


def undo_plan_id(plan_id: str, number: int) -> str:
    """The id of the plan that undoes a plan for the first, second, ... time."""
    return undo_id(plan_id) if number == 1 else run_id(undo_id(plan_id), number)


def with_undos(run: Run) -> Run:
    """The run, with an `undo` for each step without one whose tool is known to have one (`Language.undoes`), and its
    child plans with theirs.

    For a plan that a person undoes. One that rolls back undoes what it says itself, and nothing else.
    """
    undoes = run.language.undoes

    def changed(step: Step) -> Step:
        if any(does_stay(step) for does_stay in run.language.stays):
            return step
        inner = with_bodies(step, lambda _, each: changed(each))
        rule = undoes.get(inner.tool or "") if inner.undo is None else None
        return inner if rule is None else inner.model_copy(update={"undo": rule})

    steps = {name: _with_tool_undos(state) for name, state in run.steps.items()}
    if any(steps[name] is not state for name, state in run.steps.items()):
        run = run.model_copy(update={"steps": steps})
    if not any(step.tool in undoes for _, step in walk(run.plan)):
        return run
    plan = run.plan.model_copy(update={"steps": [changed(step) for step in run.plan.steps]})
    return run.model_copy(update={"plan": plan})


def _with_tool_undos(state: StepState) -> StepState:
    """The state of a step whose child plan has only steps that their tools can undo, as one that has undos."""
    child = state.child
    if child is None or child.report is None or not child.report.tool_undos:
        return state
    report = child.report.model_copy(update={"undos": child.report.undos + child.report.tool_undos, "tool_undos": 0})
    new = state.model_copy(update={"parts": dict(state.parts)})
    new.child = child.model_copy(update={"report": report})
    return new


def tool_undos(run: Run) -> int:
    """How many steps of an ended run a person's undo undoes besides those that say how."""
    return len(to_undo(with_undos(run))) - len(to_undo(run))


def left_to_undo(run: Run, step_id: str | None = None) -> list[str]:
    """Ids of the steps that are still to be undone, in this order; of one step, only that and what is inside it.

    Raises Refused (UNKNOWN_STEP).
    """
    if step_id is not None and step_id not in run.outline:
        raise unknown_step(step_id, run)
    found = to_undo(run)
    if step_id is None:
        return found
    return [name for name in found if step_id in (name, *(node.id for node in run.outline.ancestors(name)))]


def undoing(run: Run, new_id: str, now: datetime, *, step_id: str | None = None, yes: bool = False) -> Run:
    """A run that undoes these steps; `run` is not changed. `yes`: no undo awaits approval.

    Raises Refused (NOTHING_TO_DO, UNKNOWN_STEP).
    """
    order = left_to_undo(run, step_id)
    if not order:
        raise Refused("no completed step has an `undo` that is still to be done", "NOTHING_TO_DO")
    is_again = run.closing is not None and run.closing.of
    of = run.closing.of if run.closing is not None and run.closing.of else run.plan.id or ""
    new, before = run.model_copy(deep=True), list(undone_steps(run))
    title = run.plan.title if is_again else f"Undo: {run.plan.title or of}"
    changed = {"id": new_id, "task_id": run.plan.task_id or of, "title": title[:1_000], "finally_": None}
    new.plan = run.plan.model_copy(update=changed)
    new.options = run.options.model_copy(update={"review": False, "approve_all": yes})
    reset_to_draft(new)
    new.ledger = new.ledger.model_copy(update={"open": {}})
    new.failed_as, new.notices, new.ends_by = "", {}, {}
    new.interrupted, new.aborted, new.resumes, new.request, new.agents = False, False, "", "", {}
    new.remembered, new.decisions, new.denied = {}, {}, []
    # Of what closed the plan, only the undos that were completed stay, with the steps inside them.
    undos = [undo_of(name) for name in before]
    closed = {name for name, state in new.steps.items() if state.closes}
    closed -= {name for name in closed if any(name == undo or name.startswith(f"{undo}.") for undo in undos)}
    new.steps = {name: _over(state, of, now) for name, state in new.steps.items() if name not in closed}
    new.opened = {name: opened for name, opened in new.opened.items() if name in new.steps}
    new.closing = Closing(phase="rollback", ends=PlanStatus.COMPLETED.value, order=order, before=before, of=of)
    new.note(LogKind.CLOSING, f"{UNDOES} '{of}': {len(order)} to undo, the last completed first", now)
    return new


def with_restored(run: Run, restored: RestoredFiles) -> Run:
    """The run of an ended plan whose files were restored since: it runs those steps again, and finds the files so.

    A step that an `undo` takes back, its own or that of a block around it, is not done only once that has completed
    (`with_undone`). What the run has seen of a file counts where it is as a step that is kept had left or read it.
    """
    own = {name: state for name, state in run.steps.items() if not state.closes}
    steps = [name for name in dict.fromkeys(restored.steps) if name in own and not _says_how(run, name)]
    found = [(_seen_as(run, each), each) for each in restored.files]
    found = [(seen, each) for seen, each in found if seen in run.files.stamps]
    if not steps and not found:
        return run
    kept = (name for name, state in own.items() if state.status is Status.COMPLETED and name not in steps)
    read_by, files = readers(run, kept) if found else {}, run.files.model_copy(deep=True)
    for seen, each in found:
        before = own[each.step_id].ended if each.step_id in own else None
        ends = [own[name].ended for name in read_by.get(seen, ())]
        was_seen = each.ours or any(before and end and end <= before for end in ends)
        del files.stamps[seen]
        if was_seen and each.state not in (None, "", FOLDER) and each.size is not None:
            files.stamps[seen] = Stamp(hash=each.state or "", size=each.size)
    closing = run.closing or Closing(phase="rollback", ends=run.status.value)
    closing = closing.model_copy(update={"restored": steps})
    return run.model_copy(update={"closing": closing, "files": files})


def _says_how(run: Run, step_id: str) -> bool:
    """Whether an `undo`, of the step or of what is around it, takes back what it did."""
    nodes = (run.outline.nodes[step_id], *run.outline.ancestors(step_id))
    return any(node.step.undo is not None or node.step.tool in run.language.undoes for node in nodes)


def _seen_as(run: Run, file: RestoredFile) -> str:
    """The name under which the run has the stamp of a file (`file_tracking`)."""
    queues = (queue for queue, workspace in run.facts.workspaces.items() if workspace == file.workspace)
    queue = "" if file.workspace == run.facts.workspace else next(queues, "")
    return f"{queue}:{file.path}" if queue else file.path


def with_undone(run: Run, undo_run: Run, restored: Collection[str] = ()) -> Run:
    """The run of a plan with what `undo_run` has undone of it since, so that resuming it does those steps again.

    Their undo may have changed the files of these steps: what the plan saw of them no longer counts, but for those of
    which it is known how they are (`restored`, see `with_restored`).
    """
    names = list(undone_steps(undo_run))
    if not names:
        return run
    own = {name: state for name, state in run.steps.items() if not state.closes}
    tried = [name for name, became in outcomes(undo_run) if became.status in ("failed", "skipped")]
    found = {undo_of(name): undo_run.steps[undo_of(name)] for name in (*names, *tried)}
    theirs = {path for name in names if name in own for path in (*own[name].wrote, *own[name].deleted)}
    files = run.files.model_copy(deep=True)
    theirs -= set(restored)
    for seen in [seen for seen in files.stamps if seen.rpartition(":")[2] in theirs or seen in theirs]:
        del files.stamps[seen]
    opened = {name: each for name, each in run.opened.items() if name in own}
    again = run.closing.restored if run.closing is not None else []
    closing = Closing(phase="rollback", ends=run.status.value, before=names, restored=again)
    closing = closing.model_copy(update={"order": tried, "begun": len(tried)})
    plan = run.plan.model_copy(update={"steps": undo_run.plan.steps})  # with what undid them (`with_undos`)
    changed = {"plan": plan, "steps": {**own, **found}, "closing": closing, "files": files, "opened": opened}
    return run.model_copy(update=changed)


def problem_of(run: Run) -> str | None:
    """Why a Run that is handed in cannot close its plan as it says; None if it can, or says nothing about it."""
    closing = run.closing
    marked = [name for name, state in run.steps.items() if state.closes]
    if closing is None:
        return f"run.steps: '{marked[0][:100]}' closes a plan that is not being closed" if marked else None
    if not closing.of or closing.phase != "rollback" or closing.begun or closing.cancelled or closing.abandoned:
        return "run.closing: only a run that undoes a plan starts with it"
    if run.plan.finally_ or closing.ends != PlanStatus.COMPLETED.value:
        return "run.closing: a run that undoes a plan does nothing else"
    undone = [undo_of(name) for name in closing.before]
    odd = next((name for name in undone if name not in run.steps or run.steps[name].closes != UNDO), None)
    if odd is not None or FINALLY in marked:
        return f"run.steps: '{(odd or FINALLY)[:100]}' is not the undo of a step"
    if len(set(closing.order)) < len(closing.order) or set(closing.order) - set(to_undo(run)):
        return "run.closing.order: names what cannot be undone, or twice"
    if any(undo_of(name) in run.steps for name in closing.order):
        return "run.closing.order: names a step whose undo has begun"
    return None


def _over(state: StepState, of: str, now: datetime) -> StepState:
    """The state of a step that is over, in the run that undoes its plan."""
    if state.closes or state.status in (Status.COMPLETED, Status.SKIPPED):
        return state
    text = f"this run only undoes steps of '{of}'"
    over = left_out(text, Result(ok=False, error=text, code=LEFT_OUT, timestamp=now))
    over.child = state.child  # what its plan has done is undone as well
    return over

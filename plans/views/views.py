"""Builds the views of a run for clients: the full view and the brief view.

The result is JSON data in the shapes of `plans.views.models`, which clients parse. Building the models first would take
twice as long for 10,000 steps, and queries block the workflow.

The full view is seed 004's Plan with status and result per step, plus `status`, `pending`, `counts`, `log`,
`step_tool_history` and `step_files` (seed 000; their keys are step indexes, from 0). The brief view is for following a
plan of any size. `plans.views.progress.events` has the progress events: there is no separate store of progress.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.change_log import Revision
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.readiness import ReadinessIndex
from plansurvive.plans.execution.tool_history import last_record
from plansurvive.plans.model import Step
from plansurvive.plans.model.plan import OfPlan, plan_names
from plansurvive.plans.run import Decision, Result, Run, Status, StepState
from plansurvive.plans.run.step_call import carries
from plansurvive.plans.run.undone import shown_steps, undone
from plansurvive.plans.views.progress.changed import may_differ
from plansurvive.plans.views.progress.closing import closing_view, undo_view
from plansurvive.plans.views.progress.events import asks, result_view, taken_view
from plansurvive.plans.views.progress.pending import iso, more_pending, pending
from plansurvive.plans.views.steps.child import child_view
from plansurvive.plans.views.steps.counting import STATUS_WORDS
from plansurvive.plans.views.steps.records import by_index, calls_by_index, shared_by_index
from plansurvive.plans.views.steps.row import status_word
from plansurvive.plans.views.steps.values import result_with_value
from plansurvive.plans.views.steps.views import inside_views, with_inside

_IF_SET = plan_names(OfPlan.SPARSE)


def plan_view(run: Run, schedule: ReadinessIndex) -> dict[str, Any]:
    """The full view (a PlanView): the plan joined with what happened."""
    plan = run.plan
    inside = inside_views(run, brief_step)
    steps = [
        {**step_view(run, schedule, index, step), **inside.get(step.id, {})}
        for index, step in enumerate(shown_steps(run))
    ]
    unset = [name for name in _IF_SET if not getattr(plan, name)]
    head = plan.model_dump(mode="json", exclude={"steps", *sorted(unset)}, exclude_none=True)
    return head | {
        **origin(run),
        "status": run.status.value,
        "seq": run.seq,
        "startedAt": iso(run.started),
        "endedAt": iso(run.ended),
        "duration": duration(run),
        "workspace": run.facts.workspace or plan.workspace,
        "inputs": run.inputs,
        "stopped": run.stopped,
        **_of_child(run),
        **({"resumes": run.resumes} if run.resumes else {}),
        **({"unsigned": True} if run.unsigned else {}),
        **closing_view(run),
        **_notices(run),
        "counts": counts(run),
        "steps": steps,
        "pending": pending(run),
        **more_pending(run),
        "request": run.request,
        "problems": [problem.model_dump(mode="json", exclude_none=True) for problem in run.problems],
        "draft": run.draft,
        "changes": [_change(each) for each in run.revisions],
        "tokens": tokens(run),
        "log": [entry.model_dump(mode="json", exclude_none=True) for entry in run.log],
        "step_tool_history": tool_history(run),
        "step_files": step_files(run),
        **_step_files_shared(run),
        "agentsMd": [{"path": note.path, "bytes": note.bytes, "stepId": note.step_id} for note in run.notes],
    }


def _notices(run: Run) -> dict[str, Any]:
    """What features say of a plan that has not ended."""
    said = {} if run.ended else {name: notice.model_dump(mode="json") for name, notice in run.notices.items()}
    return {"notices": said} if said else {}


def _of_child(run: Run) -> dict[str, Any]:
    """The plan that this one runs for, if it does; and its value, once it has one."""
    link = {"parent": {"planId": run.parent.plan_id, "stepId": run.parent.step_id}} if run.parent else {}
    return link | ({"value": result_view(run.value)} if run.value else {})


def brief_view(run: Run, since: int | None = None) -> dict[str, Any]:
    """The brief view (a BriefView), cheap for a plan of any size: the fields of a step that a list shows.

    Arguments are included only for steps that requested approval; `seq` of a step is the number of its last event.
    With `since`, only the steps that may differ after that event and the later entries of the log.
    """
    listed = shown_steps(run) if since is None else may_differ(run, since)
    steps = [brief_step(run, step) for step in listed]
    return {
        "id": run.plan.id,
        **origin(run),
        "title": run.plan.title,
        "version": run.plan.version,
        "status": run.status.value,
        "seq": run.seq,
        **({"estimatedDuration": estimate} if (estimate := run.plan.estimated_duration) is not None else {}),
        "startedAt": iso(run.started),
        "endedAt": iso(run.ended),
        "counts": counts(run),
        **closing_view(run),
        **_notices(run),
        "steps": steps,
        **with_inside(run, steps, brief_step),
        "pending": pending(run),
        **more_pending(run),
        **({"tokens": used} if (used := tokens(run)) else {}),
        "log": [entry.model_dump(mode="json", exclude_none=True) for entry in run.log if entry.seq > (since or 0)],
        **({} if since is None else {"since": since}),
    }


def origin(run: Run) -> dict[str, Any]:
    """The task that the plan serves, when the plan was created, and the host that it stays with, if it does."""
    host = {"host": {"name": run.host.name, "queue": run.host.queue}} if run.host else {}
    return {"taskId": run.plan.task_id or run.plan.id, "createdAt": iso(created(run)), **host}


def created(run: Run) -> datetime | None:
    """When the plan was created: as it says itself, else when its first run began to exist."""
    return run.plan.created_at or run.created or run.started


def duration(run: Run) -> float:
    """Seconds from start to end; 0 until the run has ended."""
    return (run.ended - run.started).total_seconds() if run.ended and run.started else 0.0


def tokens(run: Run) -> dict[str, Any]:
    """LLM usage so far, that of the plan's agents included (a TokensView); empty if there was no LLM request."""
    return run.ledger.to_json(run.llm_seconds) if run.llm_calls or run.ledger.by_step else {}


def step_view(run: Run, schedule: ReadinessIndex, index: int, step: Step) -> dict[str, Any]:
    """One step with its status and result (a StepView)."""
    state = run.steps[step.id]
    view = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    view |= {
        "order": index,
        "description": run.description_of(step),
        "args": run.args_of(step),
        "dependsOn": step.depends_on,
    }
    view["needs"] = list(schedule.needs(step.id))
    view["critical"] = run.plan.defaults.critical if step.critical is None else step.critical
    view["requiresApproval"] = needs_mark(run, step)
    view |= {"closes": state.closes} if state.closes else {}
    view |= undo_view(run, step)
    view["status"] = state.status.value
    if state.status is Status.BLOCKED:
        view["blockedBy"] = schedule.open_needs(step.id)
        view["never"] = state.permanently_blocked
    if state.reason:
        view["reason"] = state.reason
    view |= _left(state)
    if state.warnings:
        view["warnings"] = list(state.warnings)
    if state.awaiting:
        view["awaiting"] = state.awaiting
    if step.id in run.decisions:
        view["decision"] = decision_view(run.decisions[step.id])
    if state.answer is not None:
        view["answer"] = state.answer.view()
    if state.failure:
        view["failure"] = result_view(state.failure)
    if state.notes:
        view["notes"] = notes_of(step, state)
    if state.mended:
        view["mended"] = state.mended
    if state.child is not None:
        view["child"] = child_view(state.child)
    view |= run.views.fields(run.plan.id or "", step, state)
    if state.result:
        view["result"] = result_with_value(run, step.id, result_view(state.result))
    return view | _times(state)


def notes_of(step: Step, state: StepState) -> str:
    """The notes of a step: the plan's own first, then what was said about its work."""
    return "; ".join(filter(None, [step.notes, state.notes]))


def needs_mark(run: Run, step: Step) -> bool:
    """Whether the step is shown as needing approval, regardless of waivers for the whole run."""
    asks = approvals.stated(run, step)
    if asks is not None:
        return asks
    spec = run.facts.tools.get(step.tool)
    return spec is not None and spec.asks_by_default(run.args_of(step), carries(run, step))


def counts(run: Run) -> dict[str, int]:
    """Number of the plan's steps by status, without zeros, and in total. Denied steps are `denied`, not `skipped`.

    A block or loop is one step, whatever is inside it.
    """
    states = [run.steps[step.id] for step in run.plan.steps]
    number = Counter([status_word(state) if state.status is Status.SKIPPED else state.status for state in states])
    return {"total": number.total()} | {name: number[name] for name in STATUS_WORDS if number[name]}


def tool_history(run: Run) -> dict[str, list[dict[str, Any]]]:
    """The tool calls by step index; one of a step inside has the `stepId` of the instance."""
    return calls_by_index(run, calls_view)


def step_files(run: Run) -> dict[str, list[str]]:
    """The files and directories written, by step index; each once."""
    return by_index(run, lambda state: state.wrote)


def _step_files_shared(run: Run) -> dict[str, Any]:
    """Of `step_files`, those that may be another step's: by step index and path, whose; omitted if there are none."""
    shared = shared_by_index(run)
    return {"step_files_shared": shared} if any(shared.values()) else {}


def calls_view(run: Run, step: Step) -> list[dict[str, Any]]:
    """The tool calls of one step."""
    return [_call(call) for call in (*run.steps[step.id].past, last_record(run, step)) if call is not None]


def _call(call: PastCall) -> dict[str, Any]:
    """One call or attempt, with what is known of the attempt and of the run or agent that made it."""
    view: dict[str, Any] = {"tool": call.tool, "args": call.args, "result": call.result, "timestamp": iso(call.time)}
    view |= {"sandbox": call.sandbox} if call.sandbox else {}
    if call.attempt is not None:
        view |= {"attempt": call.attempt.number, "duration": call.attempt.duration}
        view |= {"code": call.attempt.code} if call.attempt.code else {}
        view |= {"delay": call.attempt.delay} if call.attempt.delay is not None else {}
    view |= {"agent": call.agent, "call": call.number} if call.agent else {}
    view |= {"planId": call.run} if call.run else {}
    if call.asked is not None:
        view |= {"asked": call.asked, **({"changedBy": call.by} if call.by else {})}
    return view


def _left(state: StepState) -> dict[str, Any]:
    """The step's file changes besides `wrote`, and how many calls are not listed; empty ones are omitted."""
    left: dict[str, Any] = {"deleted": state.deleted, "sharedFiles": state.shared, "sharedWith": state.shared_with}
    left |= {"moreFiles": state.more_files, "moreCalls": state.more_past}
    return {name: value for name, value in left.items() if value}


def brief_step(run: Run, step: Step) -> dict[str, Any]:
    """The fields of one step that a list shows (a BriefStep)."""
    state = run.steps[step.id]
    view: dict[str, Any] = {
        "id": step.id,
        "tool": step.tool,
        "description": run.description_of(step),
        "status": state.status.value,
        "seq": state.changes[-1].seq if state.changes else 0,
        **({"closes": state.closes} if state.closes else {}),
        **({"undo": became.status} if (became := undone(run, step.id)) else {}),
    }
    if asks(state):
        view["args"] = run.args_of(step) if state.asked is None else state.asked
        view |= {"digest": state.digest} if state.digest and state.asked is not None else {}
    if state.awaiting:
        view["awaiting"] = state.awaiting
    if state.deadline and state.status is Status.RUNNING:
        view["until"] = iso(state.deadline)
    if state.permanently_blocked:
        view["never"] = True
    if state.child is not None:
        view["child"] = child_view(state.child)
    view |= run.views.fields(run.plan.id or "", step, state)
    if state.result:
        view["result"] = _brief_result(state.result)
    return view | _times(state)


def decision_view(decision: Decision) -> dict[str, Any]:
    """Who decided, and what about: with arguments of the approver's own, by a time limit, or by an earlier decision."""
    shown = {"approved", "by", "comment", "time", "source", "remembered"}
    shown |= {name for name in ("via", "verified", "signed") if getattr(decision, name)}
    view = decision.model_dump(mode="json", include=shown)
    return view | {"changedArgs": decision.args is not None}


def _brief_result(result: Result) -> dict[str, Any]:
    view: dict[str, Any] = {"ok": result.ok, "duration": result.duration, **taken_view(result)}
    return view if result.ok else view | {"error": result.error, "code": result.code}


def _times(state: StepState) -> dict[str, Any]:
    began, ended = state.began, state.ended
    return ({"startedAt": iso(began)} if began else {}) | ({"endedAt": iso(ended)} if ended else {})


def _change(revision: Revision) -> dict[str, Any]:
    found = revision.model_dump(mode="json", exclude={"before", "step_id"})
    return {name: each for name, each in found.items() if each or name not in ("via", "verified", "signed")}

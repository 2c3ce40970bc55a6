"""What a client sees of a run: the joined plan, its progress events, what waits for a person. Plain JSON values.

The joined view is seed 004's Plan with status and result per step, plus `status`, `pending`, `counts`, `log`,
`step_tool_history` and `step_files` (seed 000; their keys are step indexes, from 0). Events are read off the status
changes a run keeps anyway: there is no second store of progress.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from plans.recording import TRUNCATED, cut
from plans.run import DONE, Result, Run, Status, StepState
from plans.standing import Standing
from plans.task_progress import tasks_of


def plan_view(run: Run, schedule: Standing) -> dict[str, Any]:
    """The joined view: what was asked, with what happened."""
    plan = run.plan
    steps = [step_view(run, schedule, index) for index in range(len(plan.steps))]
    head = plan.model_dump(mode="json", exclude={"steps"}, exclude_none=True)
    return head | {
        "status": run.status.value,
        "seq": run.seq,
        "startedAt": _iso(run.started),
        "endedAt": _iso(run.ended),
        "duration": (run.ended - run.started).total_seconds() if run.ended and run.started else 0.0,
        "workspace": run.facts.workspace or plan.workspace,
        "inputs": run.inputs,
        "stopped": run.stopped,
        **({"resumes": run.resumes} if run.resumes else {}),
        "counts": counts(schedule),
        "steps": steps,
        "pending": pending(run),
        "request": run.request,
        "problems": [problem.model_dump(mode="json", exclude_none=True) for problem in run.problems],
        "draft": run.draft,
        "changes": [each.model_dump(mode="json", exclude={"before"}) for each in run.revisions],
        "tokens": tokens(run),
        "log": [entry.model_dump(mode="json", exclude_none=True) for entry in run.log],
        "step_tool_history": tool_history(run),
        "step_files": step_files(run),
        "agentsMd": [{"path": note.path, "bytes": note.bytes, "stepId": note.step_id} for note in run.notes],
    }


def tokens(run: Run) -> dict[str, Any]:
    """What the LLM took: in all, by step (an empty id: planning) and by model. Empty when it was never asked."""
    if not run.llm_calls:
        return {}
    ledger = run.ledger
    total = ledger.total.model_dump(mode="json")
    by_step = {name: usage.total_tokens for name, usage in ledger.by_step.items()}
    by_model = {name: usage.total_tokens for name, usage in ledger.by_model.items()}
    return {**total, "seconds": round(run.llm_seconds, 3), "byStep": by_step, "byModel": by_model}


def step_view(run: Run, schedule: Standing, index: int) -> dict[str, Any]:
    """One step with its status and result."""
    step = run.plan.steps[index]
    state = run.steps[step.id]
    view = step.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    view |= {"order": index, "description": step.description, "args": run.args_of(step), "dependsOn": step.depends_on}
    view["needs"] = list(schedule.needs(step.id))
    view["critical"] = run.plan.defaults.critical if step.critical is None else step.critical
    view["requiresApproval"] = needs_mark(run, index)
    view["status"] = state.status.value
    if state.status is Status.BLOCKED:
        view["blockedBy"] = schedule.open_needs(step.id)
        view["never"] = state.never
    if state.reason:
        view["reason"] = state.reason
    view |= _left(state)
    if state.warnings:
        view["warnings"] = list(state.warnings)
    if state.awaiting:
        view["awaiting"] = state.awaiting
    if state.failure:
        view["failure"] = result_view(state.failure)
    if state.mended:
        view["mended"] = state.mended
    if state.tasks:
        view["tasks"] = tasks_of(state)
    if state.result:
        view["result"] = result_view(state.result)
    return view | _times(run, index)


def needs_mark(run: Run, index: int) -> bool:
    """Whether the step is shown as needing approval; a waiver of the whole run does not change the mark."""
    step = run.plan.steps[index]
    if step.requires_approval is not None:
        return step.requires_approval
    spec = run.facts.tools.get(step.tool)
    return spec is not None and spec.asks_by_default(run.args_of(step))


def result_view(result: Result) -> dict[str, Any]:
    """A result as JSON. A value kept elsewhere is shown by its preview, with `large` saying where it is."""
    view = result.model_dump(mode="json", exclude_none=True)
    if result.large:
        view["value"] = result.large.preview + TRUNCATED
    return view


def counts(schedule: Standing) -> dict[str, int]:
    """Steps by status, and their total; only what occurs."""
    return {"total": len(schedule.run.steps)} | {
        status.value: schedule.counts[status] for status in Status if schedule.counts[status]
    }


def pending(run: Run) -> list[dict[str, Any]]:
    """The decisions people are asked for, oldest first."""
    waiting = [step for step in run.plan.steps if run.steps[step.id].awaiting == "approval"]
    waiting.sort(key=lambda step: run.steps[step.id].changes[-1].seq)
    return [
        {
            "stepId": step.id,
            "kind": next(iter(run.steps[step.id].proposal or {}), run.steps[step.id].awaiting),
            "tool": step.tool,
            "description": step.description,
            "args": run.steps[step.id].asked or run.args_of(step),
            "since": _iso(run.steps[step.id].changes[-1].time),
            "deadline": _iso(run.steps[step.id].deadline),
            "version": run.plan.version,
        }
        for step in waiting
    ]


def events(run: Run, since: int, limit: int) -> list[dict[str, Any]]:
    """Progress events numbered higher than `since`, in order, at most `limit` (seed 004 plus `seq` and `time`).

    A log entry is an event with `logs`; one about the plan has an empty `stepId` and the plan's status.
    """
    return heapq.nsmallest(limit, _events(run, since), key=lambda event: int(event["seq"]))


def shorten(value: Any) -> str:
    """A value as text of at most 200 characters, then `...[truncated]` (seed 000)."""
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def tool_history(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Per step index: the tool calls made for it."""
    found: dict[str, list[dict[str, Any]]] = {}
    for index, step in enumerate(run.plan.steps):
        state = run.steps[step.id]
        calls = [_call(call.tool, call.args, call.result, call.time, call.sandbox) for call in state.past]
        if state.result is not None and state.calls > len(state.past):
            began = [change.time for change in state.changes if change.status is Status.RUNNING]
            args = run.args_of(step) if state.sent is None else state.sent
            result, time = _short_outcome(state.result), began[-1] if began else None
            calls.append(_call(step.tool, args, result, time, state.sandbox))
        if calls:
            found[str(index)] = calls
    return found


def step_files(run: Run) -> dict[str, list[str]]:
    """Per step index: the files and directories it made or changed, each once."""
    steps = enumerate(run.plan.steps)
    return {str(index): list(run.steps[step.id].wrote) for index, step in steps if run.steps[step.id].wrote}


def _call(tool: str, args: dict[str, Any], result: str, time: datetime | None, sandbox: str) -> dict[str, Any]:
    record = {"tool": tool, "args": args, "result": result, "timestamp": _iso(time)}
    return record | ({"sandbox": sandbox} if sandbox else {})


def _short_outcome(result: Result) -> str:
    if result.large:
        return result.large.preview + TRUNCATED
    return shorten(result.value) if result.ok else cut(f"Error: {result.error}")


def _left(state: StepState) -> dict[str, Any]:
    """What the step did to files besides those it wrote, as far as there is something to tell."""
    left = {"deleted": state.deleted, "sharedFiles": state.shared, "moreFiles": state.more_files}
    return {name: value for name, value in left.items() if value}


def _events(run: Run, since: int) -> Iterator[dict[str, Any]]:
    task = run.plan.task_id or run.plan.id
    for step_id, state in run.steps.items():
        if not state.changes or state.changes[-1].seq <= since:
            continue
        for change in state.changes:
            if change.seq > since:
                event: dict[str, Any] = {
                    "seq": change.seq,
                    "time": _iso(change.time),
                    "taskId": task,
                    "stepId": step_id,
                }
                event["status"] = change.status.value
                if change.status in DONE and state.result and change is state.changes[-1]:
                    event |= {"progress": 100, "result": _short_result(state.result)}
                yield event
    for entry in run.log:
        if entry.seq > since:
            line = {"time": _iso(entry.time), "kind": entry.kind, "text": entry.text}
            head = {"seq": entry.seq, "time": line["time"], "taskId": task, "stepId": entry.step_id or ""}
            progress = {} if entry.progress is None else {"progress": entry.progress}
            yield head | {"status": entry.status, "logs": [line]} | progress


def _short_result(result: Result) -> dict[str, Any]:
    view = result_view(result)
    if "value" in view:
        view["value"] = shorten(view["value"]) if not result.large else view["value"]
    return view


def _times(run: Run, index: int) -> dict[str, Any]:
    changes = run.steps[run.plan.steps[index].id].changes
    started = [change.time for change in changes if change.status is Status.RUNNING]
    ended = [change.time for change in changes if change.status in DONE]
    found: dict[str, Any] = {"startedAt": _iso(started[-1])} if started else {}
    return found | ({"endedAt": _iso(ended[-1])} if ended else {})


def _iso(time: Any) -> str | None:
    return None if time is None else time.isoformat().replace("+00:00", "Z")

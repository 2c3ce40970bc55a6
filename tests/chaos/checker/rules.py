"""Judges a record: what was lost, what happened twice, and what nobody was told of. Standard library only.

`lost`: a plan that did not end, or not as promised. `doubled`: an effect that happened more often than it may.
`silent`: a plan that says `completed` while an effect is missing, a failure without a code or a text, a wait without a
reason. `left`: a file that no plan promised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.checker.record import OPEN, Promise, Record, Workflow

LOST, DOUBLED, SILENT, LEFT = KINDS = ("lost", "doubled", "silent", "left")


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that must not be."""

    kind: str
    workflow: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.workflow}: {self.text}"


def findings(record: Record) -> list[Finding]:
    """All of them; none if the night went well."""
    found = [finding for promise in record.promises for finding in _of_plan(promise, record)]
    found += [finding for each in record.workflows.values() for finding in _of_history(each)]
    return sorted({*found, *_left(record)})


def _of_plan(promise: Promise, record: Record) -> Iterator[Finding]:
    workflow = record.workflows.get(promise.workflow)
    if workflow is None:
        yield Finding(LOST, promise.workflow, "the server knows no such plan")
        return
    yield from _ended(promise, workflow)
    yield from _told(promise, workflow)
    is_done = workflow.status in promise.statuses
    for path, expected in [*promise.listed.items(), *promise.any_order.items()]:
        yield from _lines(workflow, path, record.lines(path), expected, is_done)
    for path, expected in promise.listed.items():
        lines = record.lines(path)
        if Counter(lines) == Counter(expected) and lines != list(expected):
            yield Finding(LOST, workflow.id, f"{path}: lines in another order: {lines}")
    for path, expected in promise.at_most.items():
        yield from _lines(workflow, path, record.lines(path), expected, is_done=False)
    yield from _either(promise, workflow, record, is_done)
    yield from _contents(promise, workflow, record, is_done)


def _ended(promise: Promise, workflow: Workflow) -> Iterator[Finding]:
    if workflow.status == OPEN:
        reason = reason_to_wait(workflow)
        yield Finding(LOST, workflow.id, f"it has not ended; {reason or 'it waits for nothing'}")
        if not reason:
            yield Finding(SILENT, workflow.id, "it waits without a reason")
    elif workflow.status not in promise.statuses:
        said = "; ".join(f"{each['stepId']}: {each.get('code')} {each.get('error')}" for each in _failed(workflow))
        wanted = " or ".join(promise.statuses)
        yield Finding(LOST, workflow.id, f"it ended as {workflow.status}, not {wanted}: {said or workflow.failure}")


def _told(promise: Promise, workflow: Workflow) -> Iterator[Finding]:
    """People are told of each failure: the step, a code and a text."""
    if workflow.status == OPEN:
        return
    told = {each["stepId"]: each for each in _failed(workflow)}
    for step, each in told.items():
        if not each.get("code") or not each.get("error"):
            yield Finding(SILENT, workflow.id, f"{step} failed without a code or a text")
    for step, code in promise.failed.items():
        if told.get(step, {}).get("code") != code:
            yield Finding(SILENT, workflow.id, f"{step} must be shown as failed with {code}, not {told.get(step)}")
    if workflow.status == "completed" and told:
        yield Finding(SILENT, workflow.id, f"it says completed, but {', '.join(told)} failed")


def _lines(
    workflow: Workflow, path: str, lines: Sequence[str], expected: Sequence[str], is_done: bool
) -> Iterator[Finding]:
    """Whether a file has its lines, each as often as promised."""
    there, wanted = Counter(lines), Counter(expected)
    for line, count in (there - wanted).items():
        yield Finding(DOUBLED, workflow.id, f"{path}: {count} times too often: {line}")
    if is_done:
        for line in wanted - there:
            yield Finding(SILENT, workflow.id, f"{path}: it says {workflow.status}, but there is no line {line}")


def _either(promise: Promise, workflow: Workflow, record: Record, is_done: bool) -> Iterator[Finding]:
    for group in promise.either:
        if is_done and not any(record.lines(path) for path in group):
            yield Finding(SILENT, workflow.id, f"neither the effect nor that it is in doubt: {', '.join(group)}")


def _contents(promise: Promise, workflow: Workflow, record: Record, is_done: bool) -> Iterator[Finding]:
    for path, expected in promise.files.items():
        text = record.text(path)
        if text is not None and text != expected:
            kind = SILENT if is_done else LOST
            yield Finding(kind, workflow.id, f"{path}: {len(text)} characters that are not those promised")
        elif text is None and is_done:
            yield Finding(SILENT, workflow.id, f"it says {workflow.status}, but there is no {path}")


def _of_history(workflow: Workflow) -> Iterator[Finding]:
    """A step that completed never runs again: no call of it completes twice."""
    names = {event["eventId"]: each["activityId"] for event, each in workflow.of_type("ActivityTaskScheduled")}
    ended = Counter(names[each["scheduledEventId"]] for _, each in workflow.of_type("ActivityTaskCompleted"))
    for name, count in ended.items():
        if count > 1 and not name.isdigit():  # the engine's own activities are numbered
            yield Finding(DOUBLED, workflow.id, f"the call {name} completed {count} times")


def _left(record: Record) -> Iterator[Finding]:
    """Files that no plan promised, such as temporary ones."""
    known = {path for promise in record.promises for path in promise.paths}
    present = (path.relative_to(record.workspace) for path in record.workspace.rglob("*") if path.is_file())
    return (Finding(LEFT, "-", f"{path} belongs to no plan") for path in map(str, present) if path not in known)


def reason_to_wait(workflow: Workflow) -> str:
    """What an open workflow waits for, as anybody can see it; empty if for nothing."""
    pending = workflow.description
    reasons = [f"{each.get('activityId')} is pending" for each in pending.get("pendingActivities", [])]
    reasons += [f"its child {each.get('workflowId')} runs" for each in pending.get("pendingChildren", [])]
    task = pending.get("pendingWorkflowTask")
    reasons += [f"a workflow task is pending, attempt {task.get('attempt', 1)}"] if task else []
    ended = {each["startedEventId"] for kind in ("Fired", "Canceled") for _, each in workflow.of_type(f"Timer{kind}")}
    timers = [event["eventId"] for event, _ in workflow.of_type("TimerStarted")]
    reasons += [f"timer {number} runs" for number in timers if number not in ended]
    asked = pending.get("workflowExecutionInfo", {}).get("searchAttributes", {}).get("indexedFields", {})
    reasons += ["it awaits a person"] if "PlanPending" in asked else []
    return ", ".join(reasons)


def counts(found: Iterable[Finding]) -> Mapping[str, int]:
    """Number of findings of each kind."""
    numbers = Counter(each.kind for each in found)
    return {kind: numbers[kind] for kind in KINDS}


def _failed(workflow: Workflow) -> Sequence[Mapping[str, str]]:
    return workflow.summary.get("failed") or []

"""Records a step's tool calls and the files they changed, as reported by the tools, never by an LLM (seed 000).

Records are small: long texts are truncated, and nothing that the plan or a result contains is stored again.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from plansurvive.plans.activity_io import MAX_DURATION, PREVIEW_CHARACTERS, Attempt, Logs, PastCall, Return
from plansurvive.plans.model import Step
from plansurvive.plans.plan_diff import same_value
from plansurvive.plans.run import Change, Result, Run, Status, StepState

SMALL = 1_000
"""Values of at most this many characters of JSON text are whole in an event: 1,000 events make one answer."""
TRUNCATED = "...[truncated]"
MAX_SHOWED = 10
"""Questions of one step whose arguments are kept for events; `asked` has those of the last one whole."""
MAX_PAST = 100
"""Maximum number of calls and attempts without a value recorded per step."""
MAX_RETRIED = 5_000
"""Maximum number of retried attempts recorded per run; further ones are counted. A Run is sent whole."""
MAX_ERROR = 500
"""Maximum length of the error in the record of an attempt."""
MAX_COUNT = 1_000_000_000


def note_call(run: Run, step: Step, args: dict[str, Any]) -> None:
    """Record the start of a call with these arguments."""
    state = run.steps[step.id]
    sent = None if args == run.args_of(step) else short(args)
    if state.sent is not sent:
        state.sent = sent
    if state.sandbox:
        state.sandbox = ""


def note_failure(run: Run, step: Step, result: Result, began: datetime, returned: Return) -> None:
    """Record a call that ended without a value, and each attempt of it that its worker reported."""
    state = run.steps[step.id]
    attempts, last = list(returned.attempts), None
    # The last attempt is the one that ended the call, unless another one followed it, which was not reported.
    ended = attempts[-1] if attempts else None
    if ended and ended.delay is None and ended.code == result.code and ended.number == result.attempt:
        last = attempts.pop()
    note_attempts(run, step, attempts, returned.more_attempts)
    text = cut(f"Error: {result.error}")
    state.past.append(
        PastCall(
            tool=step.tool, args=_sent(run, step), result=text, time=last.began if last else began,
            sandbox=state.sandbox, attempt=last and bounded(last), call=state.calls, **_replaced(run, step),
        )
    )  # fmt: skip
    _forget_oldest(state)


def note_attempts(run: Run, step: Step, attempts: Sequence[Attempt], more: int = 0) -> None:
    """Record attempts of a call that were followed by another one; `more` of them were not reported."""
    if not attempts and not more:
        return
    state, room = run.steps[step.id], min(MAX_PAST, MAX_RETRIED - run.retried)
    kept = attempts[-room:] if room > 0 else []
    replaced = _replaced(run, step)
    run.retried += len(kept)
    for attempt in kept:
        state.past.append(
            PastCall(
                tool=step.tool, args=_sent(run, step), result=cut(f"Error: {attempt.error}"), time=attempt.began,
                sandbox=state.sandbox, attempt=bounded(attempt), call=state.calls, retried=True, **replaced,
            )
        )  # fmt: skip
    state.more_past += min(more, MAX_COUNT) + len(attempts) - len(kept)
    _forget_oldest(state)


def add_past(state: StepState, calls: Iterable[PastCall]) -> None:
    """Record calls of a step's agent."""
    state.past += calls
    _forget_oldest(state)


def was_called(state: StepState) -> bool:
    """Whether the step's result is of a call that was made for it: not among its past ones, nor of an earlier run."""
    return last_call(state) and not (state.result is not None and state.result.taken_from)


def last_call(state: StepState) -> bool:
    """Whether the step's result is of a call that is not among its past ones."""
    ended = sum(not (call.retried or call.run) for call in state.past)
    return state.result is not None and state.calls > ended


def last_record(run: Run, step: Step) -> PastCall | None:
    """The call that gave the step's result, as a record; None if it is among the past ones, or of an earlier run.

    It has an `attempt` if others came before in the same call.
    """
    state = run.steps[step.id]
    if state.result is None or not was_called(state):
        return None
    began = state.began or state.result.timestamp
    before = [call.time for call in state.past if call.retried and call.call == state.calls and not call.run]
    if before:
        duration = timedelta(milliseconds=min(state.result.duration, MAX_DURATION))
        began = max(before[-1], state.result.timestamp - duration)
    return PastCall(
        tool=step.tool, args=_sent(run, step), result=outcome_text(state.result), time=began, sandbox=state.sandbox,
        attempt=_attempt_of(state.result, began) if before else None, call=state.calls, **_replaced(run, step),
    )  # fmt: skip


def last_output(state: StepState) -> Logs | None:
    """What the commands of the last attempt wrote, if it gave no value and they wrote anything."""
    attempt = state.past[-1].attempt if state.past and not (state.result and state.result.ok) else None
    logs = attempt.logs if attempt else None
    return logs if logs and logs.of_value is None and logs.stdout + logs.stderr else None


def attempts_before(state: StepState, change: Change) -> list[dict[str, Any]]:
    """The retried attempts of the call that ended with a change of status, as JSON without their logs."""
    ended = state.changes.index(change)
    if ended == 0 or state.changes[ended - 1].status is not Status.RUNNING:
        return []
    number = sum(each.status is Status.RUNNING for each in state.changes[:ended])
    calls = (call for call in state.past if call.call == number and call.retried and not call.run)
    return [
        call.attempt.model_dump(mode="json", exclude_defaults=True, exclude={"logs"}) for call in calls if call.attempt
    ]


def begun_again(run: Run, step: Step) -> StepState:
    """The state of the step in a run that resumes this one: new, with the calls so far, each with its run."""
    state, last = run.steps[step.id], last_record(run, step)
    past = list(state.past)
    if last is not None and state.result is not None:
        past.append(last.model_copy(update={"attempt": _attempt_of(state.result, last.time)}))
    kept = [call if call.run else call.model_copy(update={"run": run.plan.id or ""}) for call in past]
    new = StepState(past=kept, more_past=state.more_past, earlier=dict(state.earlier))
    _forget_oldest(new)
    return new


def note_files(run: Run, step_id: str, returned: Return) -> None:
    """Record the files one call changed. A path is listed once per step."""
    state = run.steps[step_id]
    add_files(state, returned.wrote, returned.deleted, returned.shared, returned.shared_with)
    if returned.more_files:
        state.more_files += returned.more_files
    if state.sandbox != returned.sandbox:
        state.sandbox = returned.sandbox


def add_files(
    state: StepState, wrote: Iterable[str], deleted: Iterable[str], shared: Iterable[str], shared_with: Iterable[str]
) -> None:
    """Add to the files of a step those of one call. A file deleted later no longer counts as written, nor reversed."""
    wrote, deleted, shared, shared_with = list(wrote), list(deleted), list(shared), list(shared_with)
    if not (wrote or deleted or shared or shared_with):
        return
    _add(state.wrote, wrote)
    _add(state.deleted, deleted)
    _add(state.shared, shared)
    _add(state.shared_with, shared_with)
    if deleted and state.wrote:
        gone = set(deleted) - set(wrote)
        state.wrote = [path for path in state.wrote if path not in gone]
    if wrote and state.deleted:
        back = set(wrote)
        state.deleted = [path for path in state.deleted if path not in back]


def files_of_run(run: Run) -> dict[str, Any]:
    """Files that all calls of a run changed, in the fields of a Return; None where a file has no stamp."""
    files, stamps = StepState(), run.files.stamps
    states = [state for state in run.steps.values() if state.changes]
    for state in sorted(states, key=lambda state: state.changes[-1].seq):
        add_files(files, state.wrote, state.deleted, state.shared, state.shared_with)
    return {
        "wrote": {name: stamps[name].model_dump(mode="json") if name in stamps else None for name in files.wrote},
        "deleted": files.deleted,
        "shared": files.shared,
        "sharedWith": files.shared_with,
        "moreFiles": sum(state.more_files for state in states),
    }


def cut(text: str) -> str:
    """The first 200 characters of a text, then `...[truncated]` if it is longer."""
    return text if len(text) <= PREVIEW_CHARACTERS else text[:PREVIEW_CHARACTERS] + TRUNCATED


def keep_asked(state: StepState, kind: str = "") -> None:
    """Keep the arguments of the step's last question for events, small, before others take their place."""
    number = next(reversed(state.asks), None)
    if number is not None and state.asked is not None and number not in state.showed:
        state.showed[number] = small_args(state.asked, kind)
    for first in list(state.showed)[:-MAX_SHOWED]:
        del state.showed[first]


def keep_proposed(state: StepState) -> None:
    """As `keep_asked`, if the question is about a proposal, which nothing else keeps once it is decided."""
    if state.proposal is not None:
        keep_asked(state, next(iter(state.proposal)))


def small_args(args: dict[str, Any], kind: str = "") -> dict[str, Any]:
    """Arguments for events: `{args}`, or for long ones `{args, cut, length}`, with the beginning of each one's text.

    `length`: characters of the JSON text of all of them. `kind`: of the proposal that they are, if any.
    """
    head = {"kind": kind} if kind else {}
    text = json.dumps(args, ensure_ascii=False, default=str)
    if len(text) <= SMALL:
        return {**head, "args": args}
    room = max(20, SMALL // max(1, len(args)) - 40)
    first = list(args.items())[:20]
    texts = ((name, value if isinstance(value, str) else json.dumps(value, default=str)) for name, value in first)
    return {**head, "args": {name[:80]: text[:room] for name, text in texts}, "cut": True, "length": len(text)}


def short(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments as in a record: long texts truncated."""
    return {name: _cut_value(value) for name, value in args.items()}


def shorten(value: Any) -> str:
    """A value as text, truncated to 200 characters with the suffix `...[truncated]` (seed 000)."""
    return cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def outcome_text(result: Result) -> str:
    """A result as the text of a record: the value, or the error."""
    if result.large:
        return result.large.preview + TRUNCATED
    return shorten(result.value) if result.ok else cut(f"Error: {result.error}")


def relative(path: str, workspace: str) -> str:
    """A path as recorded in the run: relative to the workspace, without `.` and doubled slashes."""
    if workspace and path.startswith(workspace.rstrip("/") + "/"):
        path = path[len(workspace.rstrip("/")) :].lstrip("/")
    return posixpath.normpath(path)


def _attempt_of(result: Result, began: datetime) -> Attempt:
    """The attempt that gave a result. Output that only the step's value holds is not in it: the value is not kept."""
    logs = result.logs if result.logs is not None and result.logs.of_value is None else None
    return Attempt(
        number=max(1, result.attempt), began=began, duration=min(max(result.duration, 0.0), MAX_DURATION),
        code=result.code, error=cut(result.error or ""), logs=logs,
    )  # fmt: skip


def _replaced(run: Run, step: Step) -> dict[str, Any]:
    """If the approver replaced the step's arguments: those asked for (`asked`), and who replaced them (`by`)."""
    args, decision = run.steps[step.id].args, run.decisions.get(step.id)
    if args is None or same_value(args, step.args):
        return {}
    return {"asked": short(step.args), "by": decision.by if decision else ""}


def _sent(run: Run, step: Step) -> dict[str, Any]:
    sent = run.steps[step.id].sent
    return short(run.args_of(step)) if sent is None else sent


def bounded(attempt: Attempt) -> Attempt:
    """The attempt with a short error: whoever completes an activity by hand may write anything."""
    return (
        attempt if len(attempt.error) <= MAX_ERROR else attempt.model_copy(update={"error": attempt.error[:MAX_ERROR]})
    )


def _forget_oldest(state: StepState) -> None:
    """Drop the oldest records beyond MAX_PAST, of earlier runs and of retried attempts first, and count them."""
    while len(state.past) > MAX_PAST:
        index = next((index for index, call in enumerate(state.past) if call.retried or call.run), 0)
        forget(state, state.past.pop(index).tool)


def forget(state: StepState, tool: str, number: int = 1) -> None:
    """Count calls that are not listed."""
    state.more_past += number
    state.earlier[tool] = state.earlier.get(tool, 0) + number


def _cut_value(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value)
    if not isinstance(value, list | dict):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= PREVIEW_CHARACTERS else cut(text)


def _add(known: list[str], paths: Any) -> None:
    if paths:
        seen = set(known)
        known += [path for path in paths if path not in seen]

"""Records a step's tool calls and the files they changed, as reported by the tools, never by an LLM (seed 000).

Records are small: long texts are truncated, and nothing that the plan or a result contains is stored again.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from plans.activity_io import PREVIEW_CHARACTERS, Return
from plans.log import PastCall
from plans.model import Step
from plans.run import Result, Run, StepState

TRUNCATED = "...[truncated]"
MAX_PAST = 100
"""Maximum number of past calls recorded per step; those before them are counted."""


def note_call(run: Run, step: Step, args: dict[str, Any]) -> None:
    """Record the start of a call with these arguments."""
    state = run.steps[step.id]
    state.sent = None if args == run.args_of(step) else short(args)
    state.sandbox = ""


def note_failure(run: Run, step: Step, result: Result, began: datetime) -> None:
    """Record a call that ended without a value."""
    state = run.steps[step.id]
    args = short(run.args_of(step)) if state.sent is None else state.sent
    text = cut(f"Error: {result.error}")
    add_past(state, [PastCall(tool=step.tool, args=args, result=text, time=began, sandbox=state.sandbox)])


def add_past(state: StepState, calls: Iterable[PastCall]) -> None:
    """Record calls; the oldest are dropped, and counted, when there are more than MAX_PAST."""
    state.past += calls
    for call in state.past[:-MAX_PAST]:
        state.earlier[call.tool] = state.earlier.get(call.tool, 0) + 1
    del state.past[:-MAX_PAST]


def lists_result(state: StepState) -> bool:
    """Whether the step's result is a call of its own, besides those in `past`."""
    made = len(state.past) + sum(state.earlier.values()) - state.kept
    return state.result is not None and state.calls > made


def carried_on(step: Step, state: StepState, args: Mapping[str, Any]) -> StepState:
    """The state of a step that a later run begins again: new, except that its tool calls are kept (seed 000)."""
    new = StepState(past=list(state.past), earlier=dict(state.earlier))
    if lists_result(state) and state.result is not None:
        sent = short(dict(args)) if state.sent is None else state.sent
        began = state.began or state.result.timestamp
        text = outcome_text(state.result)
        add_past(new, [PastCall(tool=step.tool, args=sent, result=text, time=began, sandbox=state.sandbox)])
    new.kept = len(new.past) + sum(new.earlier.values())
    return new


def outcome_text(result: Result) -> str:
    """A result as recorded: its value or error, truncated to 200 characters (seed 000)."""
    if result.large:
        return result.large.preview + TRUNCATED
    value = result.value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return cut(text) if result.ok else cut(f"Error: {result.error}")


def note_files(run: Run, step_id: str, returned: Return) -> None:
    """Record the files one call changed. A path is listed once per step."""
    state = run.steps[step_id]
    add_files(state, returned.wrote, returned.deleted, returned.shared)
    state.more_files += returned.more_files
    state.sandbox = returned.sandbox


def add_files(state: StepState, wrote: Iterable[str], deleted: Iterable[str], shared: Iterable[str]) -> None:
    """Add to the files of a step those of one call. A file deleted later no longer counts as written, nor reversed."""
    wrote, deleted = list(wrote), list(deleted)
    _add(state.wrote, wrote)
    _add(state.deleted, deleted)
    _add(state.shared, shared)
    if deleted and state.wrote:
        gone = set(deleted) - set(wrote)
        state.wrote = [path for path in state.wrote if path not in gone]
    if wrote and state.deleted:
        state.deleted = [path for path in state.deleted if path not in set(wrote)]


def cut(text: str) -> str:
    """The first 200 characters of a text, then `...[truncated]` if it is longer."""
    return text if len(text) <= PREVIEW_CHARACTERS else text[:PREVIEW_CHARACTERS] + TRUNCATED


def relative(path: str, workspace: str) -> str:
    """A path as recorded in the run: relative to the workspace, without `.` and doubled slashes."""
    if workspace and path.startswith(workspace.rstrip("/") + "/"):
        path = path[len(workspace.rstrip("/")) :].lstrip("/")
    return posixpath.normpath(path)


def short(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments as recorded: long texts, lists and objects truncated."""
    return {name: _cut_value(value) for name, value in args.items()}


def _cut_value(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value)
    if not isinstance(value, list | dict):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= PREVIEW_CHARACTERS else cut(text)


def _add(known: list[str], paths: Any) -> None:
    seen = set(known)
    known += [path for path in paths if path not in seen]

"""Records a step's tool calls and the files they changed, as reported by the tools, never by an LLM (seed 000).

Records are small: long texts are truncated, and nothing that the plan or a result contains is stored again.
"""

from __future__ import annotations

import json
import posixpath
from datetime import datetime
from typing import Any

from plans.activity_io import PREVIEW_CHARACTERS, PastCall, Return
from plans.model import Step
from plans.run import Result, Run, StepState

SMALL = 1_000
"""Values of at most this many characters of JSON text are whole in an event: 1,000 events make one answer."""
TRUNCATED = "...[truncated]"
MAX_SHOWED = 10
"""Questions of one step whose arguments are kept for events; `asked` has those of the last one whole."""
MAX_PAST = 100
"""Maximum number of calls without a value recorded per step."""


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
    state.past.append(PastCall(tool=step.tool, args=args, result=text, time=began, sandbox=state.sandbox))
    del state.past[:-MAX_PAST]


def note_files(run: Run, step_id: str, returned: Return) -> None:
    """Record the files one call changed. A path is listed once per step."""
    state = run.steps[step_id]
    _add(state.wrote, returned.wrote)
    _add(state.deleted, returned.deleted)
    _add(state.shared, returned.shared)
    state.more_files += returned.more_files
    state.sandbox = returned.sandbox
    _forget_deleted(state, returned)


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


def relative(path: str, workspace: str) -> str:
    """A path as recorded in the run: relative to the workspace, without `.` and doubled slashes."""
    if workspace and path.startswith(workspace.rstrip("/") + "/"):
        path = path[len(workspace.rstrip("/")) :].lstrip("/")
    return posixpath.normpath(path)


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


def _forget_deleted(state: StepState, returned: Return) -> None:
    """A file that a later call deleted no longer counts as written, nor one written again as deleted."""
    if returned.deleted and state.wrote:
        gone = set(returned.deleted) - set(returned.wrote)
        state.wrote = [path for path in state.wrote if path not in gone]
    if returned.wrote and state.deleted:
        state.deleted = [path for path in state.deleted if path not in returned.wrote]

"""What people and programs send to a running plan, and how a malformed message is refused.

Handlers take whatever arrives and hand it to `read`: a message with no argument, two arguments, a wrong type or too
many bytes becomes a `Refused` with a sentence, never an exception that wedges the run (FAULTS 138-150, M7).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from plans.definition.parsing import Unreadable, check_depth, check_values
from plans.edits import EditPlan, Regenerate
from plans.errors import Refused
from plans.model import Value
from plans.run import ENDED, PlanStatus, Run

MAX_BYTES = 16_384
"""Largest message accepted, as JSON (FAULTS, rule 6)."""


class Approve(Value):
    """A person lets a step start, with other arguments if given."""

    step_id: str = Field(min_length=1, max_length=200)
    by: str = Field(default="", max_length=200)
    comment: str = Field(default="", max_length=2_000)
    args: dict[str, Any] | None = None
    version: int | None = Field(default=None, strict=True)
    remember: bool = Field(default=False, strict=True, description="For every step with this tool, in this run.")


class Deny(Value):
    """A person does not let a step start: it is skipped."""

    step_id: str = Field(min_length=1, max_length=200)
    by: str = Field(default="", max_length=200)
    comment: str = Field(default="", max_length=2_000)
    version: int | None = Field(default=None, strict=True)


class Decide(Approve):
    """Either of them, for a caller who wants an answer."""

    approved: bool = Field(strict=True)


class Control(Value):
    """Pause, unpause, begin or interrupt, as a signal says by its name."""

    by: str = Field(default="", max_length=200)


Action = Literal["begin", "pause", "unpause", "interrupt"]


class ControlPlan(Control):
    """One of them, for a caller who wants an answer."""

    action: Action


class FilesChanged(Value):
    """Files, or directories, that somebody else has changed; the run must read them again before it edits them."""

    paths: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(min_length=1, max_length=1_000)
    by: str = Field(default="", max_length=200)


class FilesAsked(Value):
    """Whose stamps are asked for; none: those of all files the run knows."""

    paths: list[str] | None = Field(default=None, max_length=1_000)


class AgentProgress(Value):
    """Where the agent that does a step stands."""

    step_id: str = Field(min_length=1, max_length=200)
    line: str = Field(max_length=1_000)
    tasks: list[Annotated[str, Field(max_length=500)]] | None = Field(
        default=None, max_length=100, description="Its task list, when it is new."
    )
    done: int | None = Field(default=None, ge=0, description="How many tasks are done.")


class Since(Value):
    """The events after a number; at most `limit` of them."""

    since: int = Field(default=0, ge=0)
    limit: int = Field(default=1_000, ge=1, le=1_000)


class Shown(Value):
    """How many steps a text may list; none: all of them."""

    limit: int | None = Field(default=None, ge=1)


Message = TypeVar("Message", bound=Value)


def read(kind: type[Message], arguments: Sequence[Any], optional: bool = False, max_bytes: int = MAX_BYTES) -> Message:
    """The message in what a handler was given. Raises Refused with what is wrong with it.

    `optional` messages may come without an argument, or with null.
    """
    example = _example(kind)
    if optional and (not arguments or list(arguments) == [None]):
        return kind()
    if len(arguments) != 1:
        raise Refused(f"expected one JSON object like {example}, got {len(arguments)} arguments", "BAD_MESSAGE")
    value = arguments[0]
    if not isinstance(value, dict):
        raise Refused(f"expected one JSON object like {example}, got {repr(value)[:100]}", "BAD_MESSAGE")
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text.encode(errors="replace")) > max_bytes:
        raise Refused(f"the message is larger than {max_bytes} bytes", "MESSAGE_TOO_LARGE")
    try:
        check_depth(text)
        check_values(value)
    except Unreadable as error:
        raise Refused(error.problem.message, "BAD_MESSAGE") from error
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise Refused(f"{_first(error)}; expected an object like {example}", "BAD_MESSAGE") from error


def check_control(run: Run, action: Action) -> None:
    """Raises Refused when the plan is not in a state for it."""
    status = run.status
    if status in ENDED:
        raise Refused(f"the plan has ended ({status})", "PLAN_CLOSED")
    if action == "begin" and status is not PlanStatus.REVIEW:
        raise Refused(f"the plan is {status}, not in review", "NOT_IN_REVIEW")
    if action == "begin" and run.problems:
        told = "; ".join(problem.text for problem in run.problems[:5])
        raise Refused(f"the plan has problems to be mended first: {told}", "INVALID_PLAN")
    if action == "pause" and status is not PlanStatus.RUNNING:
        raise Refused(f"the plan is {status} and cannot be paused", "NOT_RUNNING")
    if action == "unpause" and status is not PlanStatus.PAUSED:
        raise Refused(f"the plan is {status}, not paused", "NOT_PAUSED")


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'message'}: {first['msg']}"


def _example(kind: type[Value]) -> str:
    if kind is FilesChanged:
        return '{"paths": ["src/main.py"]}'
    if kind is Decide:
        return '{"stepId": "step_1", "approved": true}'
    if kind is ControlPlan:
        return '{"action": "pause"}'
    if kind is EditPlan:
        return '{"edits": [{"op": "set", "stepId": "step_1", "path": "args.path", "value": "b.txt"}]}'
    if kind is Regenerate:
        return '{"feedback": "..."}'
    return '{"stepId": "step_1"}' if issubclass(kind, (Approve, Deny)) else "{}"

"""Payloads of signals, updates and queries, and their validation.

Handlers accept any arguments and pass them to `read`: a message with no argument, two arguments, a wrong type or too
many bytes raises `Refused`, never an exception that would fail the workflow task forever (FAULTS 138-150, rule 5).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.child_state import ChildReport
from plansurvive.plans.definition.parsing import Unreadable, check_depth, check_values
from plansurvive.plans.definition.plain_words import in_plain_words
from plansurvive.plans.errors import Refused, Undecodable
from plansurvive.plans.model import Value
from plansurvive.plans.run import ENDED, PlanStatus, Run
from plansurvive.plans.signature import Signature
from plansurvive.plans.usage import Spent

MAX_BYTES = 16_384
"""Maximum size of a message as JSON (FAULTS, rule 6)."""

AGENT_BYTES = 65_536
"""Maximum size of an agent's report as JSON: it holds several tool calls."""
MAX_COUNT = 10**9
"""Far above any number of requests, calls or tokens of a request."""
ReportedPath = Annotated[str, Field(max_length=4_096)]


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""Digest of a call: SHA-256 in hexadecimal digits (`plans.run.step_call`)."""


Via = Literal["", "web", "link", "mcp"]
"""Where a person decided: on the web page, with a one-time link, or through an agent's MCP client; empty: by command or
program."""


class Approve(Value):
    """Approve a step. `args` replaces its arguments."""

    step_id: str = Field(min_length=1, max_length=1_000)
    by: str = Field(default="", max_length=200)
    comment: str = Field(default="", max_length=2_000)
    args: dict[str, Any] | None = None
    version: int | None = Field(default=None, strict=True)
    digest: Digest | None = Field(default=None, description="The call that was decided about; another one is refused.")
    digests: list[Digest] | None = Field(
        default=None, max_length=200, description="Of a pattern: the calls that were decided about, and no others."
    )
    remember: bool = Field(default=False, strict=True, description="Approve the tool for the rest of the run.")
    override: bool = Field(
        default=False,
        strict=True,
        description="Alone, in place of all who must approve, where the operator lets the sender; `comment` says why.",
    )
    via: Via = Field(default="", description="Where the person decided.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")


class Deny(Value):
    """Deny a step: it is skipped."""

    step_id: str = Field(min_length=1, max_length=1_000)
    by: str = Field(default="", max_length=200)
    comment: str = Field(default="", max_length=2_000)
    version: int | None = Field(default=None, strict=True)
    digest: Digest | None = Field(default=None, description="The call that was decided about; another one is refused.")
    digests: list[Digest] | None = Field(
        default=None, max_length=200, description="Of a pattern: the calls that were decided about, and no others."
    )
    via: Via = Field(default="", description="Where the person decided.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")


class Decide(Approve):
    """Approve or deny a step, as an update, which returns the decision."""

    approved: bool = Field(strict=True)


class Control(Value):
    """Payload of the signals that begin, pause, unpause, interrupt or abandon a plan, or clear its session."""

    by: str = Field(default="", max_length=200)
    version: int | None = Field(default=None, strict=True, description="Of `begin`: the plan as it was reviewed.")
    above: bool = Field(
        default=False, strict=True, description="The plan above was paused or unpaused, and with it this."
    )
    via: Via = Field(default="", description="Where the person spoke.")
    verified: bool = Field(default=False, strict=True, description="The name is verified; counts only if signed.")
    signature: Signature | None = Field(default=None, description="Where the worker asks for signed decisions.")


Action = Literal["begin", "pause", "unpause", "interrupt", "clear_session", "abandon"]


class ControlPlan(Control):
    """Begin, pause, unpause, interrupt or abandon a plan, or clear its session: an update, which reports a refusal."""

    action: Action


class FilesChanged(Value):
    """Files or directories that others have changed; the run must read them again before it edits them."""

    paths: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(min_length=1, max_length=1_000)
    by: str = Field(default="", max_length=200)


class FilesAsked(Value):
    """Payload of the query for file stamps. `paths` None: all files of the run."""

    paths: list[str] | None = Field(default=None, max_length=1_000)


class StepAsked(Value):
    """Payload of the query for the call of a step."""

    step_id: str = Field(min_length=1, max_length=1_000)


class LogsAsked(Value):
    """Payload of the query for logs: of one step, or of all from number `since` in the plan's order on."""

    step_id: str = Field(default="", max_length=1_000)
    since: int = Field(default=0, ge=0)


class InsideAsked(Value):
    """Payload of the query for what is inside a block or loop: a step, a pattern; from number `since` on."""

    step_id: str = Field(min_length=1, max_length=1_000)
    since: int = Field(default=0, ge=0)
    limit: int = Field(default=200, ge=1, le=500)
    direct: bool = Field(default=False, strict=True, description="Only the items, not the steps inside them.")
    unfinished: bool = Field(default=False, strict=True, description="Without those completed or skipped: counted.")


class AgentProgress(Value):
    """Report of a step's agent or child plan to its plan: its task list, and since the last report calls and files.

    `spent` holds all that it has spent. With `request` it asks whether it may send its next LLM request, and waits for
    the answer: the signal `budget_answer`.
    """

    step_id: str = Field(min_length=1, max_length=1_000)
    line: str = Field(default="", max_length=1_000, description="For the log; empty: nothing to say.")
    tasks: list[Annotated[str, Field(max_length=500)]] | None = Field(
        default=None, max_length=100, description="The task list, if it has changed."
    )
    done: int | None = Field(default=None, ge=0, description="Number of tasks done.")
    asks: list[Annotated[str, Field(max_length=200)]] | None = Field(
        default=None, max_length=20, description="Its calls that await approval, if these have changed."
    )
    notes: str | None = Field(default=None, max_length=1_000, description="What the agent said, if it has changed.")
    agent_id: str = Field(
        default="", max_length=1_000, description="Workflow id of the agent; needed for what follows."
    )
    calls: list[PastCall] = Field(default_factory=list, max_length=1_000, description="Finished tool calls.")
    told: int = Field(default=0, ge=0, le=MAX_COUNT, description="All calls up to this number have been reported.")
    wrote: list[ReportedPath] = Field(default_factory=list, max_length=1_000)
    deleted: list[ReportedPath] = Field(default_factory=list, max_length=1_000)
    shared: list[ReportedPath] = Field(default_factory=list, max_length=1_000)
    shared_with: list[ReportedPath] = Field(default_factory=list, max_length=1_000)
    spent: Spent | None = Field(default=None, description="All that it has spent on LLM requests.")
    finished: int = Field(default=0, ge=0, le=MAX_COUNT, description="Number of the last LLM request that has ended.")
    request: int | None = Field(default=None, ge=1, le=MAX_COUNT, description="Number of the LLM request it asks for.")
    estimate: int = Field(default=0, ge=0, le=MAX_COUNT, description="Tokens that this request may need.")
    child: ChildReport | None = Field(default=None, description="Of a child plan: its status, steps and questions.")


class BudgetAnswer(Value):
    """A plan's answer to its agent, which asked whether it may send an LLM request."""

    number: int = Field(
        ge=0, le=MAX_COUNT, description="Of the request; 0: the plan has a budget now, ask from now on."
    )
    granted: bool = Field(strict=True)
    reason: str = Field(default="", max_length=1_000, description="Why it was refused.")


class Since(Value):
    """Payload of the query for events: those after number `since`, at most `limit`."""

    since: int = Field(default=0, ge=0)
    limit: int = Field(default=1_000, ge=1, le=1_000)


class BriefAsked(Value):
    """Payload of the query for the brief view of a client that has the plan's `version` as of event `since`."""

    brief: Literal[True] = True
    since: int = Field(default=0, ge=0)
    version: int = Field(default=0, ge=0)


class Shown(Value):
    """Payload of the queries that return a text. `limit`: maximum number of steps listed; None: all.

    `detailed`: with the ids, values and decisions that the display of seed 000 does not show.
    """

    limit: int | None = Field(default=None, ge=1)
    detailed: bool = False


Message = TypeVar("Message", bound=Value)


def read(kind: type[Message], arguments: Sequence[Any], optional: bool = False, max_bytes: int = MAX_BYTES) -> Message:
    """Validate the arguments of a handler. Raises Refused with what is wrong with them.

    `optional`: no argument, or null, gives a message with defaults.
    """
    example = _example(kind)
    if optional and (not arguments or list(arguments) == [None]):
        return kind()
    if len(arguments) != 1:
        raise Refused(f"expected one JSON object like {example}, got {len(arguments)} arguments", "BAD_MESSAGE")
    value = arguments[0]
    if isinstance(value, Undecodable):
        raise Refused(value.message, value.code)
    if not isinstance(value, dict):
        raise Refused(f"expected one JSON object like {example}, got {repr(value)[:100]}", "BAD_MESSAGE")
    text = check_size(value, max_bytes)
    try:
        check_depth(text)
        check_values(value)
    except Unreadable as error:
        raise Refused(error.problem.message, "BAD_MESSAGE") from error
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))[:200] or "message"
        text = f"{where}: {in_plain_words(first['msg'])[:1_000]}; expected an object like {example}"
        raise Refused(text, "BAD_MESSAGE") from error


def check_size(message: dict[str, Any], max_bytes: int = MAX_BYTES) -> str:
    """The message as JSON. Raises Refused if it is too large; clients ask before they send it."""
    text = json.dumps(message, ensure_ascii=False, default=str)
    size = len(text.encode(errors="replace"))
    if size > max_bytes:
        what = f"the message is larger than {max_bytes} bytes: it has {size}"
        raise Refused(f"{what}; put long texts into a file that a step reads", "MESSAGE_TOO_LARGE")
    return text


def check_control(run: Run, action: Action, version: int | None = None, *, above: bool = False) -> None:
    """Raises Refused if the action is not possible in the plan's present status.

    `version`: of the plan that was reviewed; another one is not begun. `above`: the plan above was paused or unpaused,
    which is possible at any time.
    """
    status, plan = run.status, f"{'agent' if run.literal else 'plan'} '{run.plan.id}'"
    now = f"{plan} is {'in review' if status is PlanStatus.REVIEW else status}"
    if status in ENDED:
        raise Refused(f"{plan} has ended ({status})", "PLAN_CLOSED")
    if action == "abandon" and run.closing is None:
        raise Refused(f"{plan} is not being closed; cancel it: `plan cancel {run.plan.id}`", "NOT_CLOSING")
    if action == "interrupt" and run.closing is not None:
        text = f"{plan} is being closed and cannot be interrupted; to end it at once, cancel it again"
        raise Refused(text, "CLOSING")
    if action == "begin" and status is not PlanStatus.REVIEW:
        continues = f"`plan unpause {run.plan.id}` continues it"
        next_step = {PlanStatus.RUNNING: "it has started already", PlanStatus.PAUSED: continues}
        text = f"{now}, not in review; {next_step.get(status, 'wait until it has been checked')}"
        raise Refused(text, "NOT_IN_REVIEW")
    if action == "begin" and version is not None and version != run.plan.version:
        text = f"the plan is at version {run.plan.version} now, and version {version} was reviewed; review it again"
        raise Refused(text, "STALE_VERSION")
    if action == "begin" and run.problems:
        texts = "; ".join(problem.text for problem in run.problems[:5])
        raise Refused(f"the plan has problems; fix them first: {texts}", "INVALID_PLAN")
    if above:
        return
    if action == "pause" and status is not PlanStatus.RUNNING and not (run.held and status is PlanStatus.PAUSED):
        way = {PlanStatus.PAUSED: "already", PlanStatus.REVIEW: f"and does nothing until `plan begin {run.plan.id}`"}
        raise Refused(f"{now} {way.get(status, 'and cannot be paused')}", "NOT_RUNNING")
    if action == "unpause" and status is not PlanStatus.PAUSED:
        starts = f"`plan begin {run.plan.id}` starts it"
        next_step = {PlanStatus.RUNNING: "there is nothing to unpause", PlanStatus.REVIEW: starts}
        text = f"{now}, not paused; {next_step.get(status, 'wait until it has been checked')}"
        raise Refused(text, "NOT_PAUSED")


def _example(kind: type[Value]) -> str:
    if kind is FilesChanged:
        return '{"paths": ["src/main.py"]}'
    if kind is Decide:
        return '{"stepId": "step_1", "approved": true}'
    if kind is ControlPlan:
        return '{"action": "pause"}'
    if issubclass(kind, (Approve, Deny, StepAsked, InsideAsked)):
        return '{"stepId": "step_1"}'
    return str(getattr(kind, "EXAMPLE", "{}"))

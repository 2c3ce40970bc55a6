"""The query `logs`: every attempt of every step, with where the output of its commands is stored (DESIGN 2.1).

The texts themselves are in the storage; `features.outputs` reads them. Of a step that began agents or child plans it
names those: their calls are steps of workflows of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pydantic import AwareDatetime, Field

from plansurvive.plans.activity_io import Logs, PastCall
from plansurvive.plans.children.family import members_of
from plansurvive.plans.definition.scopes import FINALLY
from plansurvive.plans.execution.deciding.reasons import ASKED_BY_TOOL
from plansurvive.plans.execution.messages import LogsAsked
from plansurvive.plans.execution.tool_history import last_call
from plansurvive.plans.flow.ids import covers
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Retry, Step, Value
from plansurvive.plans.run import Result, Run, Status
from plansurvive.plans.run.undone import shown_steps

PAGE_BYTES = 1_000_000
"""Length of an answer, as JSON, from which on the other steps are left to the next query."""


class LoggedAttempt(Value):
    """One attempt of a step."""

    call: int = Field(default=0, description="Number of the step's call; 0: not known, or of an earlier run.")
    number: int = 1
    began: AwareDatetime | None = None
    duration: float = Field(default=0.0, description="Milliseconds.")
    code: str | None = Field(default=None, description="Code of the error; none: it succeeded, or it runs.")
    error: str = Field(default="", description="The error, truncated.")
    delay: float | None = Field(default=None, description="Seconds to the next attempt.")
    run: str = Field(default="", description="Id of the earlier plan that made the attempt, if this plan resumes it.")
    logs: Logs | None = Field(default=None, description="The output; none: there was none.")
    texts: dict[str, str] = Field(default_factory=dict, description="The output, if it is the step's value.")
    value: LargeValue | None = Field(default=None, description="The step's value, if that holds the output.")


class LoggedStep(Value):
    """A step and its attempts, oldest first."""

    step_id: str
    tool: str
    status: Status
    of: int = Field(description="Attempts allowed.")
    attempts: list[LoggedAttempt] = Field(default_factory=list)
    members: dict[str, str] = Field(
        default_factory=dict,
        description="The agents and child plans that worked on it: by id, what their steps' ids have in front.",
    )


class LogsPage(Value):
    """The answer to the query."""

    steps: list[LoggedStep] = Field(description="Those that have begun; a step that was asked for in any case.")
    next: int | None = Field(default=None, description="`since` of the query for the other steps.")


def logs_page(run: Run, asked: LogsAsked) -> LogsPage:
    """The steps from number `asked.since` on; only those that are asked for, if any: a step, or a loop, or `a[*].b`."""
    found, size = list[LoggedStep](), 0
    for number, step in enumerate(islice(_steps(run), asked.since, None), asked.since):
        if asked.step_id and not covers(asked.step_id, step.id):
            continue
        each = _step(run, step)
        runs = each.status is Status.RUNNING and step.id not in run.opened
        if not (each.attempts or each.members or runs or asked.step_id == step.id):
            continue
        size += len(each.model_dump_json(exclude_defaults=True))
        if found and size > PAGE_BYTES:
            return LogsPage(steps=found, next=number)
        found.append(each)
    return LogsPage(steps=found)


def _steps(run: Run) -> Iterator[Step]:
    """The steps of the plan in its order, then those inside them in the order in which they begun: nothing moves."""
    first = shown_steps(run)
    yield from first
    if run.closing is not None and FINALLY in run.steps:  # the block: it has no attempts, but can be asked for
        yield run.outline.step(FINALLY)
    known = {step.id for step in first}
    for name in run.steps if run.opened else ():
        node = run.outline.nodes.get(name)
        if node is not None and node.parent is not None and name not in known:
            yield node.step


def _step(run: Run, step: Step) -> LoggedStep:
    state, spec = run.steps[step.id], run.facts.tools.get(step.tool)
    retry = step.retry or run.plan.defaults.retry or (spec and spec.retry) or Retry()
    found = LoggedStep(step_id=step.id, tool=step.tool, status=state.status, of=retry.attempts)
    if members := dict(members_of(run, step, state)):
        return found.model_copy(update={"members": members})
    attempts = [_past(call) for call in state.past if not _asked_first(call)]
    if state.result is not None and state.result.ok and last_call(state):
        attempts.append(_last(state.result, state.calls))
    return found.model_copy(update={"attempts": attempts})


def _asked_first(call: PastCall) -> bool:
    """Whether the tool only found that a person has to approve the call: it did nothing, and has not failed."""
    return call.attempt is not None and call.attempt.code == ASKED_BY_TOOL


def _past(call: PastCall) -> LoggedAttempt:
    attempt = call.attempt
    if attempt is None:
        error = call.result.removeprefix("Error: ")
        return LoggedAttempt(call=call.call, began=call.time, code="TOOL_FAILED", error=error, run=call.run)
    return LoggedAttempt(
        call=call.call, number=attempt.number, began=attempt.began, duration=attempt.duration, code=attempt.code,
        error=attempt.error, delay=attempt.delay, run=call.run, logs=attempt.logs,
    )  # fmt: skip


def _last(result: Result, call: int) -> LoggedAttempt:
    """The attempt that gave the step's value."""
    logs = result.logs
    found = LoggedAttempt(
        call=call, number=result.attempt, began=logs and logs.began, duration=result.duration, logs=logs
    )
    if logs is None or logs.of_value is None:
        return found
    if result.large is not None:
        return found.model_copy(update={"value": result.large})
    value = result.value if isinstance(result.value, dict) else {}
    texts = {name: text for name, text in value.items() if name in ("stdout", "stderr") and isinstance(text, str)}
    return found.model_copy(update={"texts": texts})

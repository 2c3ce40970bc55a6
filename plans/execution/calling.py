"""The call that a worker gets for a step, and the result that it comes to: the same in an activity of its own and in a
segment (`features.express`).

Pure: whoever makes the call says where it goes, and when it may be tried again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from plansurvive.plans.activity_io import Attempt, Call, Return
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.file_tracking import known
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.flow.ids import call_name
from plansurvive.plans.model import Plan, Retry, Step, ToolSpec
from plansurvive.plans.run import Result, Run
from plansurvive.plans.run.step_call import StepCall, StepValues, call_of

_RETRY = Retry()


class Terms(NamedTuple):
    """How long a call may take, in seconds, how often it is tried, and whether it may run twice at all."""

    timeout: float
    retry: Retry
    repeatable: bool


def terms_of(plan: Plan, step: Step, spec: ToolSpec, args: Mapping[str, Any]) -> Terms:
    """The step's own retry and timeout, else the plan's defaults, else the tool's. `args` are those of this call."""
    retry = step.retry or plan.defaults.retry or spec.retry or _RETRY
    repeatable = spec.repeatable if step.repeatable is None else step.repeatable
    if not repeatable:
        retry = retry.model_copy(update={"attempts": 1})
    timeout = step.timeout or plan.defaults.timeout
    asked = args.get("timeout")
    if timeout is None:
        # A tool with a `timeout` argument enforces that itself; ours must not fire first.
        timeout = max(spec.timeout, asked + 5.0 if isinstance(asked, (int, float)) else 0.0)
    return Terms(timeout, retry, repeatable)


def call_for(
    run: Run, step: Step, filled: Filled, values: StepValues, terms: Terms, session: str,
    earlier: Sequence[Attempt] = (), made: StepCall | None = None,
) -> Call:  # fmt: skip
    """The call of a step whose number is noted. `session`: the workflow and its first run, for the idempotency key.

    `earlier`: its attempts that were made in another activity; `made`: the call that was decided about, if known.
    """
    spec, decision, files = run.facts.tools[step.tool], run.decisions.get(step.id), known(run, step, filled)
    made = made or call_of(run, step, filled, values)
    stored: dict[str, Any] = {}
    if filled.deferred:
        stored = {
            "deferred": filled.deferred, "values": values.inline, "large": values.large,
            "composed": values.composed, "quoting": spec.quoting,
        }  # fmt: skip
    return Call(
        args=filled.args,
        plan_id=run.plan.id or "",
        step_id=step.id,
        key=key_of(session, step.id, run.steps[step.id].calls),
        workspace=made.workspace,
        directory=made.directory,
        timeout=terms.timeout,
        retry=terms.retry,
        # A decision here approves: `next_action` has skipped a step that was denied.
        approved=decision is not None or approvals.is_waived(run, step, made),
        strict=run.facts.strict_approvals,
        repeatable=terms.repeatable,
        stamps=files.stamps,
        notes_seen=files.notes_seen,
        notes_left=files.notes_left,
        **stored,
        definition=spec.definition,
        owns=[] if run.facts.strict_approvals else run.owns,
        drafted=bool(run.request) and not run.literal,
        earlier=list(earlier),
    )


def key_of(session: str, step_id: str, number: int) -> str:
    """The idempotency key of a call: the same for all its attempts and after continue-as-new, unique per call."""
    return f"{session}/{call_name(step_id, number).replace('/', '%2F')}"


def result_of(returned: Return, now: datetime, lasted: float = 0.0) -> Result:
    """The result of a step whose call has returned. `lasted`: milliseconds, where the call says no sensible duration.

    Whoever completes an activity by hand may write anything.
    """
    return Result(
        ok=True,
        value=returned.value,
        large=returned.large,
        duration=round(number(returned.duration, lasted), 3),
        timestamp=now,
        attempt=int(number(returned.attempt, 1)),
        logs=returned.logs,
        taken_from=returned.taken_from,
    )


def number(found: Any, otherwise: float) -> float:
    """A number that somebody else has written, or `otherwise` if it is none that can be used."""
    return found if type(found) in (int, float) and 0 <= found <= 1e15 else otherwise

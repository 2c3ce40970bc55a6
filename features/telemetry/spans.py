"""The spans of a plan that has ended, from its record: the plan itself, and each of its steps that began.

Attempts and LLM requests are spans of their own, which the worker that made them exports. A span says which step, tool
and outcome, and never what was passed to it or came out of it: arguments, values, prompts, titles and the texts of
errors are not in it.

Rejected: Temporal's interceptors, which export from workflow code (a span is lost or doubled when a worker dies, and a
killed attempt has none). The price: a plan that runs for weeks shows its steps' spans at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from plansurvive.features.telemetry.trace_context import Carried, TraceContext, of_step
from plansurvive.plans.run import DONE, Run, Status, StepState

SCHEMA_URL = "https://opentelemetry.io/schemas/1.37.0"
"""Version of the semantic conventions that our attributes follow, those for generative AI (`gen_ai.*`) included."""
LONGEST = 256
"""Characters of an attribute."""
_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_OPEN = (Status.PENDING, Status.BLOCKED)

Attribute = str | int | float | bool | tuple[str, ...]


class Span(NamedTuple):
    """A span that has ended."""

    name: str
    context: TraceContext
    parent: str
    """Id of the span above; empty: a root."""
    began: datetime
    ended: datetime
    attributes: dict[str, Attribute]
    error: str = ""
    """Code of the error that it ended with; empty: none."""
    kind: Literal["internal", "client"] = "internal"


def plan_spans(run: Run, carried: Carried) -> Iterator[Span]:
    """The spans of an ended plan: itself first, then its steps. Times of a step that never ended are the plan's."""
    times = [change.time for state in run.steps.values() for change in state.changes]
    began = carried.began or run.created or run.started or min(times, default=run.ended)
    if began is None:
        return
    ended = max(began, run.ended or max(times, default=began))
    attributes: dict[str, Attribute] = {
        "plans.plan.id": cut(run.plan.id or ""), "plans.plan.status": run.status.value,
        "plans.plan.version": run.plan.version, "plans.plan.steps": len(run.steps),
    }  # fmt: skip
    error = "PLAN_FAILED" if run.status.value == "failed" else ""
    yield Span("plan", carried.own, carried.parent, began, ended, attributes, error)
    for step_id, state in run.steps.items():
        span = _step_span(run, step_id, state, carried.own, began, ended)
        if span is not None:
            yield span


def code_of(code: object, other: str) -> str:
    """An error's code, if it has the form of one; tools may give any text as theirs."""
    return code if isinstance(code, str) and _CODE.fullmatch(code) else other


def cut(text: str) -> str:
    """The text as an attribute."""
    return text.encode("utf-8", "replace").decode()[:LONGEST]


def _step_span(
    run: Run, step_id: str, state: StepState, plan: TraceContext, began: datetime, ended: datetime
) -> Span | None:
    """The span of a step: from when it could begin until its end, so with the time that a person took to decide."""
    step = run.step_of(step_id)
    changes = [change for change in state.changes if change.time >= began and change.status not in _OPEN]
    if step is None or not changes:
        return None  # of an earlier run of a resumed plan, or it never could begin
    last = next((change.time for change in reversed(changes) if change.status in DONE), ended)
    attributes: dict[str, Attribute] = {
        "plans.plan.id": cut(run.plan.id or ""), "plans.step.id": cut(step_id), "plans.step.status": state.status.value,
        "plans.step.calls": state.calls, **({"plans.step.tool": cut(step.tool)} if step.tool else {}),
    }  # fmt: skip
    if state.result is not None:
        attributes["plans.step.attempts"] = state.result.attempt
        if state.result.taken_from:
            attributes["plans.step.taken_from"] = cut(state.result.taken_from)
    failed = state.status is Status.FAILED
    error = code_of(state.result and state.result.code, "TOOL_FAILED") if failed else ""
    above = _above(run, step_id, began)
    parent = of_step(plan, above) if above else plan
    return Span(
        f"step {cut(step.tool) or 'block'}", of_step(plan, step_id), parent.span_id, changes[0].time,
        max(changes[0].time, last), attributes, error,
    )  # fmt: skip


def _above(run: Run, step_id: str, began: datetime) -> str:
    """The block or loop around a step, if that has a span; empty: the plan."""
    node = run.outline.nodes.get(step_id)
    above = node.parent if node else None
    while above is not None:
        state = run.steps.get(above)
        if state and any(change.time >= began and change.status not in _OPEN for change in state.changes):
            return above
        node = run.outline.nodes.get(above)
        above = node.parent if node else None
    return ""

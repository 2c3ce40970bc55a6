"""The summary of a plan, final or so far: as numbers, and as SUMMARY.md.

Computed from the Run directly, not from its view: it is part of every plan's end, and clients wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from plans.model import Step, Value
from plans.run import PlanStatus, Run, Status, StepState
from plans.views.markdown import code, md
from plans.views.models import TokensView, View
from plans.views.views import counts, duration, tokens


class Failure(Value):
    """A step that failed."""

    step_id: str
    code: str | None = None
    error: str = ""


class Reason(Value):
    """A step that was skipped or blocked, and why."""

    step_id: str
    reason: str = ""


class Summary(View):
    """The outcome of a plan in numbers, or its state so far."""

    plan_id: str
    title: str = ""
    status: PlanStatus
    counts: dict[str, int] = Field(default_factory=dict, description="Steps by status, and `total`.")
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration: float = Field(default=0.0, description="Seconds.")
    files_written: list[str] = Field(default_factory=list)
    tokens: TokensView = Field(default_factory=TokensView)
    stopped: str = Field(default="", description="Why no further step could start.")
    failed: list[Failure] = Field(default_factory=list)
    skipped: list[Reason] = Field(default_factory=list)
    blocked: list[Reason] = Field(default_factory=list)

    @property
    def is_completed(self) -> bool:
        """Whether every step was completed or skipped."""
        return self.status is PlanStatus.COMPLETED

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON data with all fields, except that unset fields of `tokens` are omitted."""
        tokens = self.tokens.model_dump(mode="json", exclude_unset=True)
        return self.model_dump(mode="json") | {"tokens": tokens}


def summary_of(run: Run) -> Summary:
    """Summarise a run (REQUIREMENTS B9)."""
    return Summary(
        plan_id=run.plan.id or "",
        title=run.plan.title,
        status=run.status,
        counts=counts(run),
        started_at=run.started,
        ended_at=run.ended,
        duration=duration(run),
        files_written=list(dict.fromkeys(_files_left(run)))[:1_000],
        tokens=TokensView(**tokens(run)),
        stopped=run.stopped,
        failed=[_failure(step, state) for step, state in _those(run, Status.FAILED)][:100],
        skipped=[_reason(step, state) for step, state in _those(run, Status.SKIPPED)][:100],
        blocked=[_reason(step, state) for step, state in _those(run, Status.BLOCKED)][:100],
    )


def _those(run: Run, status: Status) -> Iterator[tuple[Step, StepState]]:
    """The steps with a status, in the plan's order."""
    pairs = ((step, run.steps[step.id]) for step in run.plan.steps)
    return ((step, state) for step, state in pairs if state.status is status)


def _files_left(run: Run) -> list[str]:
    """The files that steps wrote, except those that a later step deleted."""
    states = [run.steps[step.id] for step in run.plan.steps]
    deleted = {path: _end(state) for state in states for path in state.deleted}
    return [path for state in states for path in state.wrote if path not in deleted or _end(state) > deleted[path]]


def _end(state: StepState) -> datetime:
    """When the step ended; one that has not counts as later than all others."""
    return state.ended or datetime.max.replace(tzinfo=UTC)


def _failure(step: Step, state: StepState) -> Failure:
    result = state.result
    error, code_ = (result.error, result.code) if result else (None, None)
    return Failure(step_id=step.id, code=code_, error=str(error)[:500])


def _reason(step: Step, state: StepState) -> Reason:
    return Reason(step_id=step.id, reason=state.reason[:200])


def summary_markdown(summary: Summary, steps: str = "") -> str:
    """The content of SUMMARY.md, followed by the steps as text if given."""
    shown = summary.to_json()
    counts = ", ".join(f"{count} {name}" for name, count in summary.counts.items() if name != "total")
    rows = [
        f"# {md(summary.title or summary.plan_id)}",
        "",
        f"- Plan: `{summary.plan_id}`",
        f"- Status: {summary.status}",
        f"- Steps: {counts} (of {summary.counts.get('total', 0)})",
        f"- Duration: {summary.duration:.1f} s",
        f"- Started: {shown['startedAt'] or '-'}",
        f"- Ended: {shown['endedAt'] or '-'}",
    ]
    rows += _section("Failed", [f"`{each.step_id}`: {md(each.error)}" for each in summary.failed])
    rows += _section("Skipped", [f"`{each.step_id}`: {md(each.reason)}" for each in summary.skipped])
    rows += _section("Blocked", [f"`{each.step_id}`: {md(each.reason)}" for each in summary.blocked])
    rows += _section("Files written", [code(path) for path in summary.files_written])
    numbers = {name: count for name, count in shown["tokens"].items() if count and not isinstance(count, dict)}
    parts = [*_shares("model", summary.tokens.by_model), *_shares("step", summary.tokens.by_step)]
    rows += _section("Tokens", [*(f"{name}: {count}" for name, count in numbers.items()), *parts])
    rows += ["", "## Steps", "", "```", steps, "```"] if steps else []
    return "\n".join(rows) + "\n"


def _shares(kind: str, tokens: dict[str, int]) -> list[str]:
    """Tokens by model or by step, the largest first; planning and models that did not answer have no name."""
    named = sorted(((count, name) for name, count in tokens.items() if name and count), reverse=True)
    return [f"{kind} {code(name)}: {count}" for count, name in named[:50]]


def _section(title: str, items: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {item}" for item in items)] if items else []

"""The end of a plan, or where it stands: in numbers, and as the SUMMARY.md that people read.

It is made of the Run, not of its view: every plan ends with it, and those who wait for the end wait for this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from plans.model import Step
from plans.run import Run, Status, StepState
from plans.views.markdown import code, md
from plans.views.views import counts, duration, iso, tokens


def summary_of(run: Run) -> dict[str, Any]:
    """The run in numbers (REQUIREMENTS B9). `duration` is in seconds."""
    return {
        "planId": run.plan.id,
        "title": run.plan.title,
        "status": run.status.value,
        "counts": counts(run),
        "startedAt": iso(run.started),
        "endedAt": iso(run.ended),
        "duration": duration(run),
        "filesWritten": list(dict.fromkeys(_files_left(run)))[:1_000],
        "tokens": tokens(run),
        "stopped": run.stopped,
        "failed": [_failure(step, state) for step, state in _those(run, Status.FAILED)][:100],
        "skipped": [_reason(step, state) for step, state in _those(run, Status.SKIPPED)][:100],
        "blocked": [_reason(step, state) for step, state in _those(run, Status.BLOCKED)][:100],
    }


def _those(run: Run, status: Status) -> Iterator[tuple[Step, StepState]]:
    """The steps of a status, in the plan's order."""
    pairs = ((step, run.steps[step.id]) for step in run.plan.steps)
    return ((step, state) for step, state in pairs if state.status is status)


def _files_left(run: Run) -> list[str]:
    """The files the steps wrote, without those that a later step deleted."""
    states = [run.steps[step.id] for step in run.plan.steps]
    deleted = {path: _end(state) for state in states for path in state.deleted}
    return [path for state in states for path in state.wrote if path not in deleted or _end(state) > deleted[path]]


def _end(state: StepState) -> datetime:
    """When the step was done; one that was not is later than all that were."""
    return state.ended or datetime.max.replace(tzinfo=UTC)


def _failure(step: Step, state: StepState) -> dict[str, Any]:
    result = state.result
    error, code_ = (result.error, result.code) if result else (None, None)
    return {"stepId": step.id, "code": code_, "error": str(error)[:500]}


def _reason(step: Step, state: StepState) -> dict[str, Any]:
    return {"stepId": step.id, "reason": state.reason[:200]}


def summary_markdown(summary: Mapping[str, Any], steps: str = "") -> str:
    """SUMMARY.md: what came of the plan, for people; below it the steps as text, if they are given."""
    counts = ", ".join(f"{count} {name}" for name, count in summary["counts"].items() if name != "total")
    rows = [
        f"# {md(summary['title'] or summary['planId'])}",
        "",
        f"- Plan: `{summary['planId']}`",
        f"- Status: {summary['status']}",
        f"- Steps: {counts} (of {summary['counts']['total']})",
        f"- Duration: {summary['duration']:.1f} s",
        f"- Started: {summary['startedAt'] or '-'}",
        f"- Ended: {summary['endedAt'] or '-'}",
    ]
    rows += _section("Failed", [f"`{item['stepId']}`: {md(item['error'])}" for item in summary["failed"]])
    rows += _section("Skipped", [f"`{item['stepId']}`: {md(item['reason'])}" for item in summary["skipped"]])
    rows += _section("Blocked", [f"`{item['stepId']}`: {md(item['reason'])}" for item in summary["blocked"]])
    rows += _section("Files written", [code(path) for path in summary["filesWritten"]])
    if summary["tokens"]:
        rows += _section(
            "Tokens",
            [f"{name}: {count}" for name, count in summary["tokens"].items() if count and not isinstance(count, dict)],
        )
    rows += ["", "## Steps", "", "```", steps, "```"] if steps else []
    return "\n".join(rows) + "\n"


def _section(title: str, items: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {item}" for item in items)] if items else []

"""The difference between two plans as lines of text, for terminals."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.client.differences.plan_diff import FieldChange, PlanDiff, StepChange
from plansurvive.plans.text.safe_text import line

MARKS = {"added": "+", "removed": "-", "changed": "~", "moved": "↕"}


def plan_rows(diff: PlanDiff) -> list[str]:
    """One line per step that differs, and below it its fields; no line if nothing does."""
    rows = [row for each in diff.head for row in _field_rows(each, "")]
    rows += [row for each in diff.steps for row in _step_rows(each)]
    return [*rows, f"and {diff.more} more steps"] if diff.more else rows


def place_of(step: StepChange) -> str:
    """Where a step that was added or moved stands now, in words; empty for others."""
    if step.kind != "added" and not step.moved:
        return ""
    return f"after {line(step.after)}" if step.after else "first"


def _step_rows(step: StepChange) -> Iterator[str]:
    place = f"moved {place_of(step)}" if step.moved else place_of(step)
    about = [line(step.tool), line(step.description), f"({place})" if place else ""]
    yield "  ".join(filter(None, [f"{MARKS[step.kind]} {line(step.step_id)}", *about]))
    if step.kind in ("removed", "moved"):
        return
    shown = [each for each in step.fields if step.kind == "changed" or each.path not in ("tool", "description")]
    for each in shown:
        yield from (f"    {row}" for row in _field_rows(each, step.kind))


def _field_rows(field: FieldChange, kind: str) -> Iterator[str]:
    if field.rows:
        yield f"{line(field.path)}:"
        yield from (f"  {row}" for row in field.rows)
    elif kind == "added":
        yield f"{line(field.path)}: {field.now}"
    else:
        was, now = ("none" if each is None else each or '""' for each in (field.was, field.now))
        yield f"{line(field.path)}: {was} -> {now}"

"""What differs between two versions of a plan, for people: steps added, removed, moved and changed, also inside blocks.

Pure. Steps are compared by their paths (`plans.plan_diff`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from plansurvive.activities.workspace.text_diff import Bounds, unified_diff
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.model import Plan, Step, Value
from plansurvive.plans.plan_diff import ABSENT, StepDifference, field_differences, step_differences
from plansurvive.plans.text.safe_text import exact

INLINE = 80
"""Characters of a value that is shown on the line of its field; a longer one gets lines of its own."""
BOUNDS = Bounds(lines=400, characters=40_000, line_characters=1_000)
"""Of the diff of one field."""
MAX_STEPS = 500
"""Steps that are told one by one; the others are counted."""
_HEAD = frozenset(("steps", "finally_", "id", "version", "created_at", "task_id"))
Kind = Literal["added", "removed", "changed", "moved"]
_BODIES = frozenset(("steps", "finally_"))


class FieldChange(Value):
    """One field that differs. Texts have everything unusual spelt out (`plans.text.safe_text.exact`)."""

    path: str = Field(description="`description`, `dependsOn`, `args.path`, ...")
    was: str | None = Field(default=None, description="The value before, on one line; None: there was none.")
    now: str | None = Field(default=None, description="The value after, on one line; None: there is none.")
    rows: list[str] = Field(default_factory=list, description="Instead of both, for long ones: a unified diff.")


class StepChange(Value):
    """One step that differs."""

    step_id: str = Field(description="Its path: inside a block after the block's id and a dot.")
    kind: Kind
    tool: str = ""
    description: str = ""
    moved: bool = Field(default=False, description="It stands elsewhere among its siblings.")
    after: str | None = Field(default=None, description="Of one added or moved: the sibling before it; None: first.")
    fields: list[FieldChange] = Field(default_factory=list)


class PlanDiff(Value):
    """What differs between two versions of a plan."""

    head: list[FieldChange] = Field(default_factory=list, description="Of the plan itself: title, budget, ...")
    steps: list[StepChange] = Field(default_factory=list, description="In the new order; removed ones where they were.")
    more: int = Field(default=0, description="Number of further steps that differ.")

    @property
    def is_empty(self) -> bool:
        """Whether the plans are the same."""
        return not (self.head or self.steps)

    @property
    def counts(self) -> dict[str, int]:
        """Listed steps by kind."""
        kinds = [each.kind for each in self.steps]
        return {kind: kinds.count(kind) for kind in ("added", "removed", "changed", "moved") if kind in kinds}


def plan_of(data: Mapping[str, Any]) -> Plan:
    """The plan of what the query `file` returns; one that is being drafted has no steps yet."""
    return Plan.model_validate(dict(data))


def plan_diff(old: Plan, new: Plan) -> PlanDiff:
    """The differences between two plans. Versions and ids do not count."""
    found = list(_steps(dict(walk(old)), dict(walk(new))))
    head = list(field_changes(_head(old), _head(new)))
    return PlanDiff(head=head, steps=found[:MAX_STEPS], more=max(0, len(found) - MAX_STEPS))


def _steps(before: Mapping[str, Step], after: Mapping[str, Step]) -> Iterator[StepChange]:
    for each in step_differences(before, after):
        fields = list(field_changes(_own(each.old) if each.old else {}, _own(each.new) if each.new else {}))
        step = each.new or each.old
        if step is None or (each.new and each.old and not fields and not each.is_moved):
            continue  # what differs is inside it, and told there
        yield StepChange(
            step_id=each.name,
            kind=_kind(each, bool(fields)),
            tool=step.tool,
            description=exact(step.description),
            moved=each.is_moved,
            after=each.after,
            fields=fields,
        )


def _kind(found: StepDifference, has_fields: bool) -> Kind:
    if found.old is None:
        return "added"
    if found.new is None:
        return "removed"
    return "changed" if has_fields else "moved"


def field_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldChange]:
    """The fields that differ, those of `old` first."""
    for path, before, after in field_differences(old, new):
        was, now = _text(before), _text(after)
        if _is_long(was) or _is_long(now):
            diff = unified_diff("field", _ended(was or ""), _ended(now or ""), BOUNDS)
            # Without the lines of names, which are the field's.
            yield FieldChange(path=path, rows=[row for row in diff.split("\n")[2:] if row])
        else:
            yield FieldChange(path=path, was=was, now=now)


def _ended(text: str) -> str:
    return f"{text}\n" if text else ""


def _is_long(text: str | None) -> bool:
    return text is not None and (len(text) > INLINE or "\n" in text)


def _text(value: Any) -> str | None:
    if value is ABSENT:
        return None
    if isinstance(value, str):
        return exact(value)
    text = json.dumps(value, ensure_ascii=False)
    return exact(text if len(text) <= INLINE else json.dumps(value, ensure_ascii=False, indent=2))


def _head(plan: Plan) -> dict[str, Any]:
    """The fields of the plan itself; the inputs one by one. Steps of `finally` are compared as steps."""
    found: dict[str, Any] = plan.model_dump(mode="json", exclude=set(_HEAD), exclude_none=True, exclude_defaults=True)
    inputs = found.pop("inputs", {})
    return found | {f"inputs.{name}": value for name, value in inputs.items()}


def _own(step: Step) -> dict[str, Any]:
    """The fields of a step without the steps inside it, which are compared by themselves; arguments one by one."""
    data = step.model_dump(mode="json", exclude={"id", "order", *_BODIES}, exclude_none=True, exclude_defaults=True)
    args = {f"args.{name}": value for name, value in data.pop("args", {}).items()}
    for name in ("switch", "catch"):
        parts = [{key: value for key, value in each.items() if key != "steps"} for each in data.pop(name, [])]
        data |= {f"{name}.{number}": part for number, part in enumerate(parts)}
    if isinstance(data.get("undo"), dict):
        data["undo"] = {key: value for key, value in data["undo"].items() if key != "steps"}
    head = {"tool": data.pop("tool")} if "tool" in data else {}
    about = {"description": data.pop("description")} if "description" in data else {}
    return head | about | args | data

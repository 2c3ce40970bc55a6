"""Compares two versions of a plan: steps added, removed, moved and changed, those inside blocks as well. Pure.

A step is the same if it has the same path (`resize.catch.notify`). Moved are as few steps as explain the new order.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from activities.workspace.text_diff import Bounds, unified_diff
from plans.definition.scopes import walk
from plans.model import Plan, Step, Value
from plans.views.safe_text import exact

INLINE = 80
"""Characters of a value that is shown on the line of its field; a longer one gets lines of its own."""
BOUNDS = Bounds(lines=400, characters=40_000, line_characters=1_000)
"""Of the diff of one field."""
MAX_STEPS = 500
"""Steps that are told one by one; the others are counted."""
_HEAD = frozenset(("steps", "finally_", "id", "version", "created_at", "task_id"))
_BODIES = frozenset(("steps", "finally_"))


class FieldChange(Value):
    """One field that differs. Texts have everything unusual spelt out (`plans.views.safe_text.exact`)."""

    path: str = Field(description="`description`, `dependsOn`, `args.path`, ...")
    was: str | None = Field(default=None, description="The value before, on one line; None: there was none.")
    now: str | None = Field(default=None, description="The value after, on one line; None: there is none.")
    rows: list[str] = Field(default_factory=list, description="Instead of both, for long ones: a unified diff.")


class StepChange(Value):
    """One step that differs."""

    step_id: str = Field(description="Its path: inside a block after the block's id and a dot.")
    kind: Literal["added", "removed", "changed", "moved"]
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
    before, after = dict(walk(old)), dict(walk(new))
    moved = _moved(list(before), list(after))
    found = list(_steps(before, after, moved))
    head = list(field_changes(_head(old), _head(new)))
    return PlanDiff(head=head, steps=found[:MAX_STEPS], more=max(0, len(found) - MAX_STEPS))


def _steps(before: Mapping[str, Step], after: Mapping[str, Step], moved: set[str]) -> Iterator[StepChange]:
    gone = [path for path in before if path not in after]
    places = {path: number for number, path in enumerate(before)}
    for path, step in after.items():
        while path in before and gone and places[gone[0]] < places[path]:
            yield _removed(gone[0], before[gone.pop(0)])
        shown = {"step_id": path, "tool": step.tool, "description": exact(step.description)}
        if path not in before:
            fields = list(field_changes({}, _own(step)))
            yield StepChange(**shown, kind="added", after=_before(path, list(after)), fields=fields)
            continue
        fields = list(field_changes(_own(before[path]), _own(step)))
        if fields or path in moved:
            place = {"moved": True, "after": _before(path, list(after))} if path in moved else {}
            yield StepChange(**shown, kind="changed" if fields else "moved", fields=fields, **place)
    for path in gone:
        yield _removed(path, before[path])


def _removed(path: str, step: Step) -> StepChange:
    fields = list(field_changes(_own(step), {}))
    about = exact(step.description)
    return StepChange(step_id=path, kind="removed", tool=step.tool, description=about, fields=fields)


def field_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldChange]:
    """The fields that differ, those of `old` first."""
    for path in dict.fromkeys([*old, *new]):
        if path not in old or path not in new or old[path] != new[path]:
            was = _text(old[path]) if path in old else None
            now = _text(new[path]) if path in new else None
            if _is_long(was) or _is_long(now):
                yield FieldChange(path=path, rows=_rows(was or "", now or ""))
            else:
                yield FieldChange(path=path, was=was, now=now)


def _rows(was: str, now: str) -> list[str]:
    """The lines of a unified diff without names, which are the field's."""
    diff = unified_diff("field", _ended(was), _ended(now), BOUNDS)
    return [row for row in diff.split("\n")[2:] if row]


def _ended(text: str) -> str:
    return f"{text}\n" if text else ""


def _is_long(text: str | None) -> bool:
    return text is not None and (len(text) > INLINE or "\n" in text)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return exact(value)
    text = json.dumps(value, ensure_ascii=False)
    return exact(text if len(text) <= INLINE else json.dumps(value, ensure_ascii=False, indent=2))


def _head(plan: Plan) -> dict[str, Any]:
    """The fields of the plan itself; the inputs one by one."""
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


def _before(path: str, paths: Sequence[str]) -> str | None:
    """The sibling in front of a step; None if it is the first."""
    siblings = [each for each in paths if each.rpartition(".")[0] == path.rpartition(".")[0]]
    at = siblings.index(path)
    return siblings[at - 1] if at else None


def _moved(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """As few steps as must move among their siblings to get from one order to the other."""
    places: dict[str, dict[str, int]] = {}
    for number, path in enumerate(before):
        places.setdefault(path.rpartition(".")[0], {})[path] = number
    moved: set[str] = set()
    for known in places.values():
        common = [path for path in after if path in known]
        moved |= set(common) - _ascending(common, known)
    return moved


def _ascending(paths: Sequence[str], place: Mapping[str, int]) -> set[str]:
    """A longest subsequence whose places ascend."""
    ends: list[int] = []
    last: list[str] = []
    previous: dict[str, str | None] = {}
    for path in paths:
        at = bisect_left(ends, place[path])
        previous[path] = last[at - 1] if at else None
        ends[at:], last[at:] = [place[path], *ends[at + 1 :]], [path, *last[at + 1 :]]
    kept: set[str] = set()
    end: str | None = last[-1] if last else None
    while end is not None:
        kept.add(end)
        end = previous[end]
    return kept

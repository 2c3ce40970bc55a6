"""What differs between two plans, step by step and field by field, as values. Pure.

The change log (`plans.change_log`) and what clients show (`client.differences`) put it into words. Steps are compared
by name: an id, or a path such as `resize.catch.notify`. Moved are as few steps as explain the new order.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from plansurvive.plans.model import Step


class Absent(Enum):
    """Stands for a value that is not there; null is a value."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class FieldDifference(NamedTuple):
    """One field that differs: what it was and what it is, or ABSENT."""

    path: str
    was: Any
    now: Any


class StepDifference(NamedTuple):
    """A step that is new, gone, at another place among its siblings, or not equal to what it was."""

    name: str
    old: Step | None
    new: Step | None
    is_moved: bool = False
    after: str | None = None
    """Of one that is new or moved: the sibling before it; None: it is the first."""


def step_differences(before: Mapping[str, Step], after: Mapping[str, Step]) -> Iterator[StepDifference]:
    """The steps that differ, by name, in the new order; those that are gone where they were."""
    moved = _moved(list(before), list(after))
    gone = [name for name in before if name not in after]
    places = {name: number for number, name in enumerate(before)}
    siblings: dict[str, str] = {}  # by what they are inside, the last one so far
    for name, step in after.items():
        inside = name.rpartition(".")[0]
        sibling, siblings[inside] = siblings.get(inside), name
        while name in before and gone and places[gone[0]] < places[name]:
            yield StepDifference(gone[0], before[gone.pop(0)], None)
        old, is_moved = before.get(name), name in moved
        if is_moved or old is None or not _is_same(old, step):
            yield StepDifference(name, old, step, is_moved, sibling if old is None or is_moved else None)
    for name in gone:
        yield StepDifference(name, before[name], None)


def field_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldDifference]:
    """The fields that differ, those of `old` first."""
    for path in dict.fromkeys([*old, *new]):
        was, now = old.get(path, ABSENT), new.get(path, ABSENT)
        if not same_value(was, now):
            yield FieldDifference(path, was, now)


def same_value(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same. Python holds 1, 1.0 and true equal; tools and people do not."""
    return one == other and _text(one) == _text(other)


def _is_same(one: Step, other: Step) -> bool:
    if one is other:  # of most steps, after an edit
        return True
    return one == other and same_value(one.model_dump(mode="json"), other.model_dump(mode="json"))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _moved(before: Sequence[str], after: Sequence[str]) -> set[str]:
    """As few steps as must move among their siblings to get from one order to the other."""
    places: dict[str, dict[str, int]] = {}
    for number, name in enumerate(before):
        places.setdefault(name.rpartition(".")[0], {})[name] = number
    moved: set[str] = set()
    for known in places.values():
        common = [name for name in after if name in known]
        moved |= set(common) - _ascending(common, known)
    return moved


def _ascending(names: Sequence[str], place: Mapping[str, int]) -> set[str]:
    """A longest subsequence whose places ascend."""
    ends: list[int] = []
    last: list[str] = []
    previous: dict[str, str | None] = {}
    for name in names:
        at = bisect_left(ends, place[name])
        previous[name] = last[at - 1] if at else None
        ends[at:], last[at:] = [place[name], *ends[at + 1 :]], [name, *last[at + 1 :]]
    kept: set[str] = set()
    end: str | None = last[-1] if last else None
    while end is not None:
        kept.add(end)
        end = previous[end]
    return kept

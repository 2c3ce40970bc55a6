"""Splits the list of a loop with `mode: plans` into batches, and says how many of them run at the same time.

Rules
- A batch is the items from one place of the list to another; its id names both: `resize[0..99]`.
- `maxParallel`, or what the plan allows, is the number of items in progress over all child plans together. It is
  divided among them: at least two child plans where it is 2 or more, so that the end of one batch holds up half of the
  window only; more where a batch is smaller than that.
"""

from __future__ import annotations

from typing import NamedTuple

from plansurvive.plans.model import ForEach

DEFAULT_BATCH = 100
"""Items per child plan, if the plan does not say."""
MAX_BATCHED = 100_000
"""Maximum number of items of one loop with `mode: plans`: the list itself stays in the parent's history."""


class Window(NamedTuple):
    """What may be in progress at the same time."""

    plans: int
    """Child plans."""
    items: int
    """Items in each of them."""
    steps: int
    """Steps in each of them."""


def is_split(rule: ForEach | None) -> bool:
    """Whether the items of a loop run in child plans."""
    return rule is not None and rule.mode == "plans"


def units_of(rule: ForEach, items: int) -> int:
    """How many instances a loop has: its batches, or its items."""
    return -(-items // size_of(rule)) if is_split(rule) else items


def size_of(rule: ForEach) -> int:
    """Items per child plan."""
    return rule.batch or DEFAULT_BATCH


def bounds(rule: ForEach, number: int, items: int) -> tuple[int, int]:
    """The places of the first item of a batch, and of the one after its last."""
    first = number * size_of(rule)
    return first, min(items, first + size_of(rule))


def begun_items(rule: ForEach, began: int, items: int) -> int:
    """How many items are in what has begun of a loop."""
    return min(items, began * size_of(rule)) if is_split(rule) else began


def batch_key(first: int, end: int) -> str:
    """The key of a batch, as in its id; no key of an item, as there is none beside it."""
    return f"{first}..{end - 1}"


def window_of(rule: ForEach, limit: int) -> Window:
    """How many child plans, items and steps of a loop may be in progress; `limit`: steps of the whole plan."""
    most = rule.max_parallel or limit
    plans = min(limit, max(1, min(2, most), most // size_of(rule)))
    return Window(plans, max(1, most // plans), max(1, limit // plans))

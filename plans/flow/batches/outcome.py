"""What became of the batches of a loop: how many items failed or were denied, and their values.

A batch fails if one of its items fails or is denied, so that a resumed plan finds it; whether the loop fails follows
from the items of all batches. One whose child plan ended without a result, cancelled for example, fails the loop in
any case.

A denied item keeps no other from starting, unlike a failed one: a failure says that the rest may fail too, a person's
no is about that item. Rejected: counting the loop as denied, which gives `tolerate` two meanings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from plansurvive.plans.large_value import InnerValue
from plansurvive.plans.step_state import DENIALS, Status, StepState

ITEMS = "items"
"""Name of the list in the value of a batch's child plan."""


class Failures(NamedTuple):
    """The items of a loop that failed or were denied."""

    failed: int
    denied: int
    first: str | None
    """Id of the first instance or batch that has some."""
    lost: bool
    """Whether a batch has no result."""


def failures_in(state: StepState) -> int:
    """How many items failed in a batch that failed, as far as its child plan has said."""
    report = state.child.report if state.child is not None else None
    return report.failed_items if report is not None else 0


def denied_in(state: StepState) -> int:
    """How many items were denied in a batch that has ended, as its child plan has said."""
    report = state.child.report if state.child is not None else None
    return report.denied_items if report is not None else 0


def has_result(state: StepState) -> bool:
    """Whether the child plan of a batch has given its list."""
    if state.status is Status.COMPLETED:
        return True
    return state.child is not None and (state.child.large is not None or state.child.value is not None)


def has_denied(state: StepState) -> bool:
    """Whether a person denied something in a batch whose loop goes on."""
    child = state.child
    found = child is not None and child.report is not None and (child.large is not None or child.value is not None)
    counts = child.report.counts if child and child.report else {}
    return found and any(counts.get(word) for word in DENIALS.values())


def failures_of(names: Iterable[str], steps: Mapping[str, StepState]) -> Failures:
    """The items of the batches named that failed or were denied."""
    failed, denied, first, lost = 0, 0, None, False
    for name in names:
        state = steps[name]
        if state.status is not Status.FAILED:
            continue
        own, refused = failures_in(state), denied_in(state)
        failed, denied, lost = failed + own, denied + refused, lost or not has_result(state)
        if first is None and (own or refused or not has_result(state)):
            first = name
    return Failures(failed, denied, first, lost)


def list_of(state: StepState, size: int, place: tuple[str | int, ...], parts: list[InnerValue]) -> list[Any]:
    """The values of a batch's items; null for those that have none. `place`: of the first, for what is stored."""
    result, child = state.result, state.child
    if state.status is Status.COMPLETED and result is not None:
        value, large = result.value, result.large
    elif child is not None:
        value, large = child.value, child.large
    else:
        value, large = None, None
    if large is not None:
        parts.append(InnerValue(place=list(place), large=large, spread=size))
    found = value.get(ITEMS) if isinstance(value, dict) else None
    return found if isinstance(found, list) and len(found) == size else [None] * size

"""Receipts of signals: counted, refused, void; bounded; matched with the signals in history."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from plansurvive.features.audit.outcomes import Sent, closed, outcomes, read
from plansurvive.plans.receipts import KEPT, Receipts

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def came(*codes: str) -> Receipts:
    """The receipts of signals, each with the code of its refusal or nothing."""
    found = Receipts()
    for code in codes:
        found.arrived()
        if code:
            found.refuse(code, "why")
    return found


def said(receipts: Receipts, *sent: Sent) -> list[tuple[int | None, str, str]]:
    return [(each.entry, each.outcome, each.code) for each in outcomes(receipts, sent, NOON)]


def test_what_was_not_refused_was_accepted() -> None:
    found = came("", "TOO_LATE", "")
    signals = [Sent(4, "approve", "a"), Sent(7, "deny", "a"), Sent(9, "pause", "")]
    assert said(found, *signals) == [(4, "accepted", ""), (7, "refused", "TOO_LATE"), (9, "accepted", "")]


def test_a_signal_that_was_not_handled_yet_has_no_outcome_unless_the_plan_has_ended() -> None:
    found, signals = came(""), [Sent(4, "pause", ""), Sent(5, "unpause", ""), Sent(0, "pause", "")]
    assert said(found, *signals) == [(4, "accepted", "")]
    assert [(each.entry, each.outcome, each.code) for each in closed(found, signals, NOON)] == [
        (5, "refused", "PLAN_CLOSED")
    ]


def test_only_so_many_refusals_are_kept_and_nothing_is_said_of_older_signals() -> None:
    found = came("", *["TOO_LATE"] * (KEPT + 2), "")
    assert len(found.refused) == KEPT
    signals = [Sent(number, "approve", "a") for number in range(1, KEPT + 5)]
    assert [entry for entry, *_ in said(found, *signals)] == list(range(4, KEPT + 5))
    assert len(found.model_dump_json()) < 100 * KEPT


def test_a_decision_that_became_void_is_the_last_one_about_its_step() -> None:
    found = came("", "ALREADY_DECIDED", "")
    for _ in range(2):
        found.void("a", "VOID", "was about another call")
    signals = [Sent(1, "approve", "a"), Sent(2, "approve", "a"), Sent(3, "pause", "")]
    assert said(found, *signals)[3:] == [(1, "void", "VOID"), (None, "void", "VOID")]


def test_receipts_that_anybody_may_have_written_are_taken_only_in_their_form() -> None:
    assert read({"count": 3}) == Receipts(count=3)
    shapes: tuple[Any, ...] = (None, [], "x", {"count": -1}, {"counted": 1}, {"refused": [{}] * (KEPT + 1)})
    for wrong in shapes:
        assert read(wrong) is None

"""Signals of several runs of a workflow, matched with the receipts that each of them leaves in history."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.audit.outcomes import Sent
from plansurvive.features.audit.signals import Signals, between_workflows
from plansurvive.plans.receipts import Receipts

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def carried(receipts: Receipts, shape: str) -> Any:
    run = {"receipts": receipts.model_dump(mode="json")}
    return {"text": {"run": json.dumps(run)}, "agent": {"agent": {"run": run}}, "plan": {"run": run}}[shape]


@pytest.mark.parametrize("shape", ["plan", "text", "agent"])
def test_a_decision_of_one_run_that_becomes_void_in_the_next_is_named(shape: str) -> None:
    signals, void = Signals(), Receipts()
    void.void("a", "VOID", "was about another call")
    signals.sent.append(Sent(4, "approve", "a"))
    [accepted] = signals.at_continue(carried(Receipts(count=1), shape), NOON)
    signals.of_next_run()
    [voided] = signals.at_continue(carried(void, shape), NOON)
    assert (accepted.entry, accepted.outcome) == (4, "accepted")
    assert (voided.entry, voided.action, voided.outcome) == (4, "approve ended", "void")


def test_a_decision_by_update_meanwhile_is_the_one_that_becomes_void() -> None:
    signals, void = Signals(), Receipts()
    void.void("a", "VOID", "was about another call")
    signals.sent.append(Sent(4, "approve", "a"))
    signals.at_continue(carried(Receipts(count=1), "plan"), NOON)
    signals.of_next_run()
    signals.decided("a")
    [voided] = signals.at_continue(carried(void, "plan"), NOON)
    assert (voided.entry, voided.step_id) == (None, "a")


def test_arguments_without_receipts_say_nothing() -> None:
    signals = Signals()
    signals.sent.append(Sent(4, "approve", "a"))
    shapes: tuple[Any, ...] = (None, "x", {"run": "{}"}, {"run": {}}, {"agent": []})
    for argument in shapes:
        assert signals.at_continue(argument, NOON) == []
    assert signals.at_record({"summary": {}}, NOON) + signals.at_end(NOON) == []


def test_the_signals_between_the_workflows_of_a_plan_are_those_that_were_never_recorded() -> None:
    """Records that are kept are compared with what is read from history: a further name here would change them."""
    names = ("agent_progress", "budget_answer", "events_passed", "events_wanted", "place", "place_report")
    assert sorted(between_workflows()) == list(names)

"""Taking a decision back: whose it is, what stays of others, and what is too late. No server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.policy.messages import Withdraw
from plansurvive.features.policy.model import Asked, Consents, Decided, Term, Terms
from plansurvive.features.policy.withdrawing import withdraw
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.run import Decision, Run, Status, text_of
from plansurvive.plans.signature import Signature
from tests.features.policy.test_rules import NOW, SPEC, run

DIGEST = "d" * 64
LATER = datetime(2026, 11, 28, 1, tzinfo=UTC)
ASKS = SPEC.model_copy(update={"judged": False})


def by(name: str, *, signed: bool = False, **more: Any) -> Withdraw:
    signature = Signature(id="0" * 32, time=0, value="0" * 128, by=name) if signed else None
    return Withdraw(step_id="s", by=name, signature=signature, **more)


def vote(name: str) -> Decided:
    return Decided(by=name, signed=name, time=NOW, digest=DIGEST)


def asked(*names: str) -> Run:
    """A run of which these have approved the step, by a rule that wants two."""
    found = run()
    terms = Terms(rules=[Term(rule="r", count=2)])
    found.keep(Consents(steps={"s": Asked(terms=terms, decided=[vote(name) for name in names])}))
    if len(names) == 2:
        last = names[-1]
        found.decisions["s"] = Decision(approved=True, by=last, signed=last, time=NOW, digest=DIGEST, needed=2)
    return found


def left(found: Run) -> list[str]:
    return [each.by for each in found.part(Consents).steps["s"].decided]


def refused(found: Run, message: Withdraw) -> Refused:
    before = text_of(found)
    with pytest.raises(Refused) as caught:
        withdraw(found, message, LATER)
    assert text_of(found) == before
    return caught.value


def test_the_first_of_two_takes_back_what_others_must_join() -> None:
    found = asked("ann")
    text = withdraw(found, by("ann", signed=True, comment="wrong day"), LATER)
    assert text == "the approval of step 's' was withdrawn by ann (verified): wrong day; it needs another decision"
    assert left(found) == []
    assert found.log[-1].code == "WITHDRAWN"
    assert found.receipts.voided[-1].text == "", "a record quotes nobody"


@pytest.mark.parametrize(("name", "stays"), [("ann", ["bob"]), ("bob", ["ann"])])
def test_of_two_that_are_enough_each_may_withdraw_and_the_others_stays(name: str, stays: list[str]) -> None:
    found = asked("ann", "bob")
    withdraw(found, by(name, signed=True), LATER)
    assert (left(found), found.decisions) == (stays, {})


@pytest.mark.parametrize("status", [Status.RUNNING, Status.COMPLETED, Status.FAILED, Status.SKIPPED])
def test_what_a_call_has_used_is_not_withdrawn(status: Status) -> None:
    found = asked("ann", "bob")
    found.steps["s"].status = status
    error = refused(found, by("ann", signed=True))
    assert (error.code, status.value in error.message) == ("TOO_LATE", True)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (by("cara", signed=True), "NOT_DECIDED"), (by(""), "NOT_DECIDED"), (by("ann"), "UNVERIFIED"),
        (Withdraw(step_id="x", by="ann"), "UNKNOWN_STEP"), (Withdraw(step_id="s[*]", by="ann"), "BAD_MESSAGE"),
    ],
)  # fmt: skip
def test_others_take_nothing_back(message: Withdraw, code: str) -> None:
    assert refused(asked("ann"), message).code == code


@pytest.mark.parametrize("approved", [True, False])
def test_a_plain_decision_is_taken_back_by_its_name_and_can_be_made_again(approved: bool) -> None:
    found = run(spec=ASKS)
    message = Decide(step_id="s", approved=approved, by="ann", remember=approved)
    approvals.decide(found, message, NOW, "update")
    assert bool(found.remembered) is approved
    assert refused(found, by("bob")).code == "NOT_DECIDED"
    withdraw(found, by("Ann"), LATER)
    assert (found.decisions, found.remembered) == ({}, {})
    assert refused(found, by("ann")).code == "NOT_DECIDED"
    approvals.decide(found, message, LATER, "update")


def test_what_the_time_limit_decided_is_nobodys_to_take_back() -> None:
    found = run(spec=ASKS)
    found.decisions["s"] = Decision(approved=True, time=NOW, source="timeout")
    assert refused(found, by("")).code == "NOT_DECIDED"

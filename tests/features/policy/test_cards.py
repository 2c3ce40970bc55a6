"""What the policy adds to the card of a call that certain people must approve: whom it bars, and further ways."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.features.policy.in_views import IN_VIEWS
from plansurvive.plans.in_views import Viewer, ViewSet
from plansurvive.plans.step_state import Approved, Consent
from plansurvive.plans.views.models.card import Card

RULE = Consent(
    rule="release", by=["ann", "bob"], missing=1,
    people={"ann": "", "ann@example.org": "", "bob": "bob is an author", "cara": ""},
)  # fmt: skip
APPROVED = "you have approved it; others must as well"


def asks(*consents: Consent) -> Card:
    card: dict[str, Any] = {"step_id": "s", "tool": "t", "kind": "approval", "consents": consents}
    return Card.of(ViewSet([IN_VIEWS]), **card)


@pytest.mark.parametrize(
    ("card", "name", "why"),
    [
        (asks(), "eve", ""), (asks(RULE), "ann", ""), (asks(RULE), "Ann@Example.org", ""), (asks(RULE), "cara", ""),
        (asks(RULE), "bob", "bob is an author"), (asks(RULE), "eve", "rule 'release' lets ann, bob decide"),
        (asks(RULE.model_copy(update={"missing": 0}), Consent(rule="any", missing=1)), "bob", ""),
        (asks(RULE, RULE.model_copy(update={"rule": "two", "people": {"bob": ""}})), "bob", ""),
    ],
)  # fmt: skip
def test_the_card_says_why_a_person_may_not_approve(card: Card, name: str, why: str) -> None:
    assert card.barred(Viewer(name)) == why


def test_where_certain_people_must_approve_no_unproven_name_may() -> None:
    assert "no login that proves who you are" in asks(RULE).barred(Viewer("ann", is_proven=False))
    assert asks().barred(Viewer("ann", is_proven=False)) == ""


def test_a_person_is_known_by_name_and_login_to_have_approved_and_as_one_who_may_override() -> None:
    done = Consent(
        rule="r", missing=1, decided=[Approved(by="ann", time=datetime.now(UTC))], override=["bob"],
        logins={"ann": ["ann@example.org"], "bob": ["bob@example.org"]},
    )  # fmt: skip
    for name, why, ways in (
        ("ann", APPROVED, ["withdraw"]), ("ANN@example.org", APPROVED, ["withdraw"]),
        ("bob@example.org", "", ["approve"]), ("eve", "", []),
    ):  # fmt: skip
        card = asks(done)
        assert (card.barred(Viewer(name)), [way.verb for way in card.ways(Viewer(name))]) == (why, ways)
    assert asks(done).ways(Viewer("bob", is_proven=False)) == []
    assert asks(done.model_copy(update={"missing": 0})).ways(Viewer("bob")) == []

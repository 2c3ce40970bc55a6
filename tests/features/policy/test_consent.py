"""Who must approve: the table of decisions, every combination, beside cases that are written out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from plansurvive.features.policy.consent import standing, who_may
from plansurvive.features.policy.model import Decided, Delegated, Known, Spoken, Term, Terms

NOW = datetime(2026, 11, 28, 14, 2, tzinfo=UTC)
KEYS = {name: f"{number:064x}" for number, name in enumerate(("ann", "bob", "cara", "dan", "team"), 1)}
PEOPLE = {name: Known(key=KEYS[name], logins=[f"{name}@example.org"]) for name in ("ann", "bob", "cara", "dan")}


def terms(*rules: Term, delegations: Sequence[tuple[str, str, int]] = ()) -> Terms:
    given = [
        Delegated.model_validate({"from": one, "to": other, "until": NOW + timedelta(hours=hours)})
        for one, other, hours in delegations
    ]
    return Terms(rules=list(rules), people=PEOPLE, pages={"team": KEYS["team"]}, delegations=given)


def by_key(name: str, minutes: int = 0, **more: Any) -> Decided:
    """An approval with a person's own key, that many minutes ago."""
    own = {"by": name, "signed": name, "key": KEYS[name], "time": NOW - timedelta(minutes=minutes)}
    return Decided.model_validate({**own, **more})


def author(name: str, *, proven: bool = True) -> Spoken:
    return Spoken(by=name, signed=name if proven else "", key=KEYS[name] if proven else "")


PAGE: dict[str, Any] = {"by": "ann@example.org", "signed": "page:team", "key": KEYS["team"], "verified": True}
WAYS: dict[str, tuple[Decided, str]] = {
    "her own key": (by_key("ann"), "ann"),
    "a page with a login": (by_key("ann", **PAGE), "ann"),
    "another case of the login": (by_key("ann", **{**PAGE, "by": "Ann@Example.org"}), "ann"),
    "a page without one": (by_key("ann", **{**PAGE, "verified": False}), ""),
    "a login that nobody has": (by_key("ann", **{**PAGE, "by": "eve@example.org"}), ""),
    "another page's key": (by_key("ann", **{**PAGE, "key": KEYS["bob"]}), ""),
    "a key she has no more": (by_key("ann", key=KEYS["bob"]), ""),
    "a name alone": (by_key("ann", signed="", key=""), ""),
    "a login's name without a page": (by_key("ann", by="ann@example.org", signed="", key="", verified=True), ""),
    "no name": (by_key("ann", by="", signed="", key=""), ""),
    "somebody the policy does not know": (by_key("ann", by="eve", signed="eve", key="f" * 64), ""),
}
"""An approval, and whose it is."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize(
    ("names", "count", "not_author", "starter"),
    list(product([(), ("ann",), ("bob",), ("ann", "bob")], [1, 2], [False, True], ["ann", "bob", "unproven"])),
)
def test_the_table(
    way: str, expired: bool, names: tuple[str, ...], count: int, not_author: bool, starter: str
) -> None:  # fmt: skip
    """One approval in any way, to any rule, of a plan that anybody has started."""
    vote, whose = WAYS[way]
    vote = vote.model_copy(update={"time": NOW - timedelta(hours=5 if expired else 1)})
    term = Term(rule="r", by=list(names), count=count, not_author=not_author, expires=4 * 3_600)
    started = author("ann", proven=False) if starter == "unproven" else author(starter)
    found = standing(terms(term), [vote], [started], NOW)
    matters = bool(names) or count > 1 or not_author
    may = not matters or (whose == "ann" and (not names or "ann" in names) and not (not_author and starter == "ann"))
    needed = count + (not_author and starter == "unproven")
    counts = may and not expired
    assert (found.needed, found.missing) == (needed, needed - counts)
    assert found.is_complete is (counts and needed == 1)
    why = found.why_not(0)
    if counts:
        assert why == ""
    else:
        assert why.split(":")[0] == ("APPROVAL_EXPIRED" if expired else "UNVERIFIED" if not whose else "MAY_NOT_DECIDE")


RELEASE = Term(rule="release", by=["ann", "bob"], count=2)


@pytest.mark.parametrize(
    ("votes", "delegations", "missing"),
    [
        (["ann", "bob"], [], 0),
        (["ann", "ann"], [], 1),
        (["ann", "cara"], [], 1),
        (["ann", "cara"], [("ann", "cara", 1)], 1),
        (["cara", "ann"], [("ann", "cara", 1)], 1),
        (["bob", "cara"], [("ann", "cara", 1)], 0),
        (["bob", "cara"], [("ann", "cara", -1)], 1),
        (["cara", "dan"], [("ann", "cara", 1), ("ann", "dan", 1)], 1),
        (["cara", "dan"], [("ann", "cara", 1), ("bob", "dan", 1)], 0),
        (["bob", "dan"], [("ann", "cara", 1), ("cara", "dan", 1)], 1),
        (["ann", "bob"], [("ann", "bob", 1)], 1),
        (["ann", "bob"], [("ann", "bob", -1)], 0),
    ],
    ids=str,
)
def test_two_of_whom_one_is_delegated_by_the_other_are_one(
    votes: list[str], delegations: list[tuple[str, str, int]], missing: int
) -> None:
    given = [by_key(name, minutes=9 - place) for place, name in enumerate(votes)]
    found = standing(terms(RELEASE, delegations=delegations), given, [author("dan")], NOW)
    assert found.missing == missing


def test_one_person_with_a_key_and_a_login_is_one() -> None:
    found = standing(terms(RELEASE), [by_key("ann", 2), by_key("ann", 1, **PAGE)], [], NOW)
    assert (found.missing, found.why_not(1)) == (1, "ALREADY_DECIDED: ann has approved")


def test_an_author_does_not_decide_through_a_delegate_either() -> None:
    rule = Term(rule="r", by=["ann", "bob"], not_author=True)
    through = terms(rule, delegations=[("ann", "cara", 1)])
    found = standing(through, [by_key("cara")], [author("ann")], NOW)
    assert found.why_not(0).startswith("MAY_NOT_DECIDE")
    assert standing(through, [by_key("cara")], [author("bob")], NOW).is_complete, "control: of another's plan"


def test_each_author_who_is_not_verified_needs_one_more_person() -> None:
    rule = Term(rule="r", by=["ann", "bob", "cara"], not_author=True)
    unknown = [author("dan", proven=False), Spoken(by="eve"), Spoken(by="Eve")]
    votes = [by_key(name) for name in ("ann", "bob", "cara")]
    assert [standing(terms(rule), votes[:n], unknown, NOW).missing for n in range(4)] == [3, 2, 1, 0]
    few = standing(terms(rule), votes[:1], [*unknown, Spoken(by="fay")], NOW)
    assert "2 of those who may are left, which is too few" in few.text
    assert "(1, and 3 more as it is not proven who started or edited it)" in few.text


@pytest.mark.parametrize(
    ("term", "starter", "way"),
    [
        (
            Term(rule="", by=["ann"], count=2), [],
            "name more people in `approval.by` of the plan, or write a lower `count`",
        ),
        (Term(rule="r", by=["ann"], count=2), [], "name more people in the policy, or write a lower `count`"),
        (Term(rule="", by=["ann"], not_author=True), [author("ann")], "name more people in `approval.by` of the plan"),
        (Term(rule="r", by=["ann"], not_author=True), [author("ann")], "name more people in the policy"),
        (
            Term(rule="", by=["ann"], not_author=True), [author("dan", proven=False)],
            "start or edit it with a key of your own (`plan keys person NAME`), or name more people in"
            " `approval.by` of the plan",
        ),
    ],
)  # fmt: skip
def test_of_too_few_people_it_says_what_helps(term: Term, starter: list[Spoken], way: str) -> None:
    assert standing(terms(term), [], starter, NOW).text.endswith(f"which is too few: {way}")


def test_every_rule_that_asks_must_have_enough() -> None:
    rules = terms(Term(rule="one", by=["ann"]), Term(rule="two", by=["bob"]), Term(rule="any"))
    found = standing(rules, [by_key("ann")], [], NOW)
    assert [(each.term.rule, each.missing) for each in found.rules] == [("one", 0), ("two", 1), ("any", 0)]
    assert standing(rules, [by_key("ann"), by_key("bob")], [], NOW).is_complete


def test_it_says_who_has_approved_and_who_is_missing() -> None:
    found = standing(terms(RELEASE), [by_key("ann")], [], None)
    assert found.text == "rule 'release': 1 of 2, by ann at 14:02; bob must approve"
    assert standing(terms(RELEASE), [], [], None).text == "rule 'release': 0 of 2; ann and bob must approve"
    three = Term(rule="release", by=["ann", "bob", "cara"], count=2)
    assert standing(terms(three), [], [], None).text.endswith("; 2 more of ann, bob, cara must approve")


BREAKS = Term(rule="release", by=["ann", "bob"], count=2, not_author=True, expires=3_600, override=["dan"])


@pytest.mark.parametrize(
    ("vote", "enough", "why"),
    [
        (by_key("dan", override=True), True, ""),
        (by_key("dan"), False, ""),
        (by_key("dan", override=True, signed="", key=""), False, "UNVERIFIED"),
        (by_key("dan", 61, override=True), False, "APPROVAL_EXPIRED"),
        (by_key("ann", override=True), False, "MAY_NOT_DECIDE: rule 'release': dan may override it; ann may not"),
    ],
)
def test_an_override_is_enough_alone_for_whom_the_rule_names(vote: Decided, enough: bool, why: str) -> None:
    found = standing(terms(BREAKS), [vote], [author("dan")], NOW)
    assert (found.is_complete, found.why_not_alone(0).startswith(why)) == (enough, True)
    assert ("overridden, by dan at" in found.text) is enough


def test_an_override_is_for_its_rule_and_no_delegates() -> None:
    other = Term(rule="other", by=["cara"])
    found = standing(terms(BREAKS, other), [by_key("dan", override=True)], [], NOW)
    assert (found.is_complete, [each.missing for each in found.rules]) == (False, [0, 1])
    given = terms(BREAKS, delegations=[("dan", "cara", 1)])
    assert not standing(given, [by_key("cara", override=True)], [], NOW).is_complete
    assert "dan may override it" in standing(given, [], [], NOW).text


def test_it_is_said_of_each_person_whether_they_may_approve_and_why_not() -> None:
    rule = Term(rule="release", by=["ann", "bob"], count=2, not_author=True)
    given = terms(rule, delegations=[("bob", "dan", 1)])
    assert who_may(given, rule, [by_key("bob", 5)], [author("ann")], NOW) == {
        "ann": "ann is an author of the call, and rule 'release' wants others to decide",
        "bob": "bob has approved",
        "dan": "dan counts as one with bob, who has approved",
    }
    everybody = Term(rule="two", count=2)
    assert who_may(terms(everybody), everybody, [], [], NOW) == dict.fromkeys(PEOPLE, "")

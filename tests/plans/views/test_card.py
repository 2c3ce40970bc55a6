"""A card says once what every view shows: what is asked, what is in it, where, until when, and how to decide."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.plans.in_views import InViews, Viewer, ViewSet, Way
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.proposals import Named, Proposal
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.models.card import Card, command, commands, wanted
from plansurvive.plans.views.steps.call_text import call_rows

UNTIL = datetime(2026, 11, 25, 12, tzinfo=UTC)


REPAIR = Proposal(
    "it broke", "Mend it?", "approval of a repair", "repairs", "a repair of", lambda *_: [Named("how", 1)]
)
VIEWS = ViewSet([InViews("repairing", proposals={"repair": REPAIR})])
"""What a feature says of its proposals."""


def call(**more: Any) -> Card:
    given = {"step_id": "wipe", "kind": "approval", "tool": "delete_file", "args": {"path": "a"}, "description": "Wipe"}
    return Card.of(VIEWS, **given | more)


def question(**args: Any) -> Card:
    return Card(
        step_id="q", kind="question", tool="ask", args={"question": "Which?", **args}, queue="w", workspace="/w"
    )


@pytest.mark.parametrize(
    ("kind", "heading", "what"),
    [
        ("approval", "Approve delete_file?", "approval"),
        ("early", "Approve delete_file?", "approval"),
        ("repair", "Mend it?", "approval of a repair"),
        ("question", "A question", "an answer of ann"),
        ("new\u200b", "Approve new\u200b?", "a decision: new\\u{200b}"),
    ],
)
def test_a_card_says_what_it_is_about(kind: str, heading: str, what: str) -> None:
    card = call(kind=kind, args={"to": "ann"})
    assert (card.heading, card.wanted) == (heading, what)


def test_features_bar_people_and_add_ways_to_decide() -> None:
    later = InViews(
        "later", barred=lambda _, viewer: "at night" if viewer.name == "bob" else "",
        ways=lambda *_: [Way("delay", "Not yet")],
    )  # fmt: skip
    card = Card.of(ViewSet([later]), step_id="a", kind="approval", tool="t")
    assert (card.barred(Viewer("ann")), card.barred(Viewer("bob"))) == ("", "at night")
    assert [way.verb for way in card.ways(Viewer("ann"))] == ["delay"]


@pytest.mark.parametrize(
    ("to", "name", "why"),
    [("Ann", "ann ", ""), ("ann", "bob", "it asks ann"), (None, "bob", ""), ("ann", "", "it asks ann")],
)
def test_a_question_may_be_for_one_person(to: str | None, name: str, why: str) -> None:
    assert question(to=to).barred(Viewer(name)) == why
    assert question(to=to).ways(Viewer(name)) == []


def test_only_a_call_has_arguments_to_replace() -> None:
    assert call().is_call
    assert call().call == {"path": "a"}
    assert not question().is_call
    assert question().call is None
    repair = call(kind="repair", args={"repair": "with glue"})
    assert (repair.is_call, repair.call) == (False, None)


def test_a_proposal_is_shown_in_the_words_of_its_feature_and_whole_without_it() -> None:
    args = {"repair": "with glue", "failure": "gone", "more": 1}
    assert call(kind="repair", args=args).subject == [("how", 1)]
    assert call(kind="repair", args=args).model_copy(update={"tool": "x"}).subject == [("how", 1)]
    alone = Card(step_id="wipe", kind="repair", tool="delete_file", args=args)
    assert alone.subject == [("repair", "with glue"), ("failure", "gone"), ("more", 1)]
    assert (alone.heading, alone.wanted) == ("Approve repair?", "a decision: repair")
    answer = {"id": "p", "status": "running", "pending": [alone.model_dump(mode="json", exclude_unset=True)]}
    assert BriefView.read(answer, VIEWS).pending[0].subject == [("how", 1)]


def test_a_call_is_made_somewhere_and_can_be_decided_until_its_time_limit() -> None:
    places = call(item="cat, item 1 of 2", queue="q", workspace="/w", deadline=UNTIL).places
    assert [tuple(part) for part in places] == [
        ("what", "Wipe"),
        ("item", "cat, item 1 of 2"),
        ("queue", "q"),
        ("workspace", "/w"),
        ("time limit", "2026-11-25 12:00:00 UTC"),
    ]
    assert call(description="").places == []


@pytest.mark.parametrize(
    ("args", "late"),
    [
        ({}, ""),
        ({"timeout": 60}, "the step fails"),
        ({"timeout": 60, "default": "x"}, "the default counts: x"),
        ({"timeout": 60, "onTimeout": "skip", "default": "x"}, "the step is skipped"),
    ],
)
def test_a_question_says_what_happens_when_nobody_answers(args: dict[str, Any], late: str) -> None:
    card = question(**args)
    assert card.late == late
    limits = [part.value for part in card.subject if part.name == "time limit"]
    assert limits == ([f"60 s, then {late}"] if late else [])
    if late:
        until = card.model_copy(update={"deadline": UNTIL})
        assert f"60 s (until 2026-11-25 12:00:00 UTC), then {late}" in [part.value for part in until.subject]


def test_a_question_is_shown_with_all_its_author_wrote_and_without_a_place() -> None:
    shown = call_rows(question(choices=["a", "b c"], to="ann", extra=5))
    assert shown[:3] == ["question     │ Which?", "choices      │ a", "             │ b c"]
    other = call_rows(question(choices=["a\nb", "c"]))
    assert other[1] == "choices      = [", "a choice with a line break is not taken for two"
    assert {"to           │ ann", "extra        = 5"} <= set(shown)
    assert not any(row.startswith(("tool", "queue", "workspace")) for row in shown)
    named = question().model_copy(update={"description": "Which?"})
    assert len(call_rows(named)) == 1, "a description that is the question is not said twice"


def test_a_value_that_could_not_be_read_is_said_to_be_unseen() -> None:
    value = LargeValue(sha256="ab" * 32, bytes=70_000, preview="the beginning")
    card = call(large={"big": value})
    assert "70,000 bytes" in card.unseen[0]
    assert [tuple(part) for part in card.stored] == [("first part of 'big'", "the beginning")]
    whole = card.model_copy(update={"values": {"big": "all of it"}})
    assert whole.unseen == []
    assert [tuple(part) for part in whole.stored] == [("value of 'big'", "all of it")]


def test_the_commands_decide_about_exactly_that_step() -> None:
    assert commands("p", "a[x y]", "approval") == "plan approve p 'a[x y]'   or: plan deny p 'a[x y]' --comment WHY"
    assert commands("p", "q", "question") == commands("p", "q", "answer") == "plan answer p q VALUE"
    assert command("p", "a", "budget", "ab") == "plan approve p a --digest ab"
    assert call(digest="ab").command("p") == "plan approve p wipe"
    assert call(digest="ab", changed=True).command("p") == "plan approve p wipe --digest ab"
    assert wanted("answer") == "an answer"


def test_the_undo_that_an_approval_covers_is_shown_whole_with_what_is_unusual_in_it() -> None:
    undo = {"tool": "run_command", "args": {"command": "rm \u200bout"}}
    rows = call_rows(Card(step_id="a", kind="approval", tool="write_file", args={"path": "out"}, undo=undo))
    assert rows[0].startswith("! undo command: U+200B")
    assert rows[-2:] == ["undo         │ run_command", "undo command │ rm \\u{200b}out"]

"""A message says what waits, all of it and exactly; what others wrote stays text in every channel."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_structured_event

from plansurvive.features.notify.cloud_event import body
from plansurvive.features.notify.messages import Item, Markup, message
from plansurvive.features.notify.outbox import Delivery, Notice, Subject
from plansurvive.features.notify.rules import Kind, Waiting
from plansurvive.plans.views.models.card import Card
from tests.plans.building import NOW

DIGEST = "ab" * 32
SUBJECT = Subject(plan_id="p", workflow_id="plan-p", run_id="r", root="plan-p", title="Nightly")
MARKUPS: list[Markup] = ["text", "markdown", "html"]


def item(step: str = "a", kind: Kind = "approval", **args: Any) -> Item:
    waiting = Waiting(mark="1-x", step_id=step, kind=kind, digest=DIGEST, since=NOW)
    notice = Notice(
        id=f"plan-p/r/{step}", target="t", event="awaiting", due=NOW, subject=SUBJECT, waiting=waiting, time=NOW
    )
    return Item(notice, Card(step_id=step, kind=kind, tool="run_command", args=args, digest=DIGEST))


def delivery(*items: Item) -> Delivery:
    return Delivery(id="msg_1", target="t", event="awaiting", stage="first", notices=[each.notice for each in items])


@pytest.mark.parametrize("markup", MARKUPS)
def test_a_message_has_the_whole_call_its_digest_and_the_command(markup: Markup) -> None:
    one = item(command="make deploy\nmake test")
    found = message(delivery(one), [one], markup=markup)
    assert found.whole
    assert found.title == "p: step a awaits approval"
    for text in ("make deploy", "make test", DIGEST, f"plan approve p a --digest {DIGEST}", "Nightly"):
        assert text in found.body


def test_a_call_that_is_too_long_is_not_cut_but_named_by_its_digest() -> None:
    one = item(command="x" * 5_000)
    found = message(delivery(one), [one], limit=2_000)
    assert not found.whole
    assert len(found.title) + len(found.body) <= 2_000
    assert "xxxx" not in found.body
    assert DIGEST in found.body
    assert "plan pending p" in found.body


@pytest.mark.parametrize("text", ["```\nall of it", "<!channel> look", "<https://evil.example|here>", "[x](http://e)"])
def test_what_a_chat_could_act_on_is_not_shown_in_it(text: str) -> None:
    one = item(command=text)
    assert text not in message(delivery(one), [one], markup="markdown").body
    assert not message(delivery(one), [one], markup="markdown").whole


def test_html_is_text_in_html() -> None:
    one = item(step="each[<img src=x>]", command="<script>alert(1)</script>")
    found = message(delivery(one), [one._replace(link='https://h/decide/a"b')], markup="html")
    assert found.whole
    assert "<script>" not in found.body
    assert "<img" not in found.body
    assert "<img" not in found.title
    assert 'href="https://h/decide/a&quot;b"' in found.body


@pytest.mark.parametrize("markup", MARKUPS)
def test_hidden_characters_are_shown(markup: Markup) -> None:
    one = item(command="rm\u202e -rf\u200b")
    found = message(delivery(one), [one], markup=markup).body
    assert "\\u{202e}" in found
    assert "\u202e" not in found


@pytest.mark.parametrize("limit", [160, 1_000, 4_000, 30_000])
@pytest.mark.parametrize("markup", MARKUPS)
def test_many_decisions_fit_into_any_channel_and_are_counted(limit: int, markup: Markup) -> None:
    items = [item(f"each[{number}]", command="y" * 50) for number in range(200)]
    found = message(delivery(*items), items, limit=limit, markup=markup)
    assert len(found.body) <= limit
    assert found.title == "p: 200 decisions wait"
    assert "200 of plan p: step each[*] awaits approval" in found.body


def test_a_question_a_review_and_an_end_have_their_commands() -> None:
    question, review = item("q", "question"), item("", "review")
    end = Item(review.notice.model_copy(update={"waiting": None, "event": "failed", "text": "failed: a: X: no"}))
    assert "plan answer p q VALUE" in message(delivery(question), [question]).body
    assert "plan review p" in message(delivery(review), [review._replace(view=None)]).body
    ended = message(delivery(end).model_copy(update={"event": "failed"}), [end])
    assert ended.title == "p: failed"
    assert "failed: a: X: no" in ended.body
    assert "plan show p" in ended.body


def test_an_event_is_a_cloud_event_with_the_whole_call() -> None:
    one = item(command="make", env={"A": "ü\u202e"})
    text = body(delivery(one), [one], page="https://h")
    event = json.loads(text)
    assert (event["specversion"], event["id"], event["subject"]) == ("1.0", "msg_1", "p")
    assert event["source"] == "https://h/plans/p"
    assert event["data"]["items"][0]["call"]["args"] == {"command": "make", "env": {"A": "ü\u202e"}}
    assert event["data"]["whole"]
    read = from_structured_event(HTTPMessage({"content-type": "application/cloudevents+json"}, text))
    assert (read.get_id(), read.get_type()) == ("msg_1", "org.plans-that-survive.awaiting")


def test_an_event_that_is_too_long_has_digests_instead_of_calls() -> None:
    items = [item(f"each[{number}]", command="y" * 1_000) for number in range(100)]
    text = body(delivery(*items), items, limit=50_000)
    event = json.loads(text)
    assert len(text) <= 50_000
    assert not event["data"]["whole"]
    assert [each["digest"] for each in event["data"]["items"]] == [DIGEST] * 100
    few = json.loads(body(delivery(*items), items, limit=5_000))
    assert few["data"]["more"] + len(few["data"]["items"]) == 100

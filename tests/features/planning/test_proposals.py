"""Proposals that await a person, in words: all of what is proposed, and nothing as raw JSON of a message."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.feature import views_of_features
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows

CALL = {"tool": "read_file", "args": {"path": "b.txt"}}


def pending(kind: str, **args: Any) -> Card:
    fields = {"step_id": "read", "kind": kind, "tool": "read_file", "description": "Read it", "workspace": "/w"}
    return Card.of(views_of_features(), **fields, args=args)


def shown(item: Card) -> list[str]:
    return call_rows(item)


def test_a_retry_says_why_and_shows_the_call_it_leads_to() -> None:
    choice = {"action": "retry", "args": {"path": "b.txt"}, "reason": "it was renamed"}
    rows = shown(pending("recovery", recovery=choice, failure="there is no a.txt", call=CALL))
    assert rows == [
        "recovery     │ of step 'read': call it again, with other arguments",
        "reason       │ it was renamed",
        "failure      │ there is no a.txt",
        "tool         │ read_file",
        "path         │ b.txt",
        "what         │ Read it",
        "workspace    │ /w",
    ]
    plain = shown(pending("recovery", recovery={"action": "retry"}, call=CALL))
    assert plain[0] == "recovery     │ of step 'read': call it again, unchanged"


def test_a_skip_says_what_follows() -> None:
    rows = shown(pending("recovery", recovery={"action": "skip", "reason": "not needed"}, failure="gone"))
    assert rows[0] == "recovery     │ of step 'read': skip it; steps that do not use its value continue"


def test_inserted_steps_are_shown_with_every_field() -> None:
    steps = [
        {"id": "make", "tool": "run_command", "args": {"command": "one\ntwo"}, "when": "a > `1`", "dependsOn": ["x"]},
        {"id": "then", "tool": "read_file", "args": {"path": "b"}, "critical": False, "notes": ""},
    ]
    choice = {"action": "insert", "steps": steps, "notes": ["requiresApproval was removed"]}
    rows = "\n".join(shown(pending("recovery", recovery=choice, failure="gone")))
    for part in (
        "of step 'read': insert 2 steps, then call it again",
        "1. step      │ make",
        "1. command   │ one\n             │ two",
        "1. when      │ a > `1`",
        "1. dependsOn = [",
        "2. step      │ then",
        "2. critical  = false",
        "requiresApproval was removed",
    ):
        assert part in rows, part


def test_a_call_whose_arguments_are_named_like_a_proposal_is_shown_as_a_call() -> None:
    item = pending("approval", recovery={"action": "skip"}, failure="no")
    assert item.call == item.args
    assert shown(item)[0] == "tool         │ read_file"


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"recovery": None},
        {"recovery": "skip"},
        {"recovery": {"action": 5, "steps": 7, "args": []}},
        {"recovery": {"action": "insert", "steps": ["x", None, {"args": 3}]}, "call": "y"},
        {"recovery": {}, "failure": {"a": [1]}, "more": "\x1b[2J"},
    ],
)
def test_a_proposal_of_any_shape_is_shown_and_escaped(args: dict[str, Any]) -> None:
    rows = shown(pending("recovery", **args))
    assert rows
    assert "\x1b" not in "".join(rows)


def test_a_proposal_of_a_kind_that_is_not_known_yet_is_shown_whole() -> None:
    assert shown(pending("question", question="Which one?", choices=["a", "b"]))[0] == "question     │ Which one?"

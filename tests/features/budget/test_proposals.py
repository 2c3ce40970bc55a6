"""A budget that a person is asked about, in words: what is spent, and what each answer leads to."""

from __future__ import annotations

from typing import Any

from plansurvive.client.feature import views_of_features
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.steps.call_text import call_rows


def pending(kind: str, **args: Any) -> Card:
    fields = {"step_id": "read", "kind": kind, "tool": "read_file", "description": "Read it", "workspace": "/w"}
    return Card.of(views_of_features(), **fields, args=args)


def shown(item: Card) -> list[str]:
    return call_rows(item)


def test_a_budget_says_what_each_answer_leads_to() -> None:
    rows = shown(pending("budget", budget="2 of 2 calls of the LLM budget are spent", failure="gone"))
    assert rows[:4] == [
        "budget       │ 2 of 2 calls of the LLM budget are spent",
        "failure      │ gone",
        "if approved  │ the budget is raised by half, and the LLM is asked again",
        "if denied    │ the LLM is not asked: step 'read' fails",
    ]


def test_a_budget_of_agents_says_what_each_answer_leads_to_once() -> None:
    args = {"budget": "2 of 2 calls are spent", "approve": "the limits become: calls 2 -> 4", "deny": "the agent ends"}
    assert shown(pending("budget", **args))[:4] == [
        "budget       │ 2 of 2 calls are spent",
        "if approved  │ the limits become: calls 2 -> 4",
        "if denied    │ the agent ends",
        "what         │ Read it",
    ]

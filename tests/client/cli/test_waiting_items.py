"""`plan pending` about many items of a loop: the commands for one of them, and for all."""

from __future__ import annotations

from plansurvive.client.cli.items.waiting import pending_rows
from plansurvive.client.runs import Pending
from plansurvive.plans.views.models.card import QUESTION


def asking(step: str, kind: str = "approval") -> Pending:
    return Pending(plan_id="p", step_id=step, kind=kind, tool="delete_file", args={"question": "Which?"})


def rows(*items: Pending) -> list[str]:
    return [row for text in pending_rows(items, folds=True) for row in text.plain.split("\n")]


def test_the_commands_for_one_item_and_for_all_are_both_said() -> None:
    assert rows(asking("each[a]"), asking("each[b]"))[:3] == [
        "p  each[*]: 2 await approval",
        "  one of them   plan approve p 'each[a]'   or: plan deny p 'each[a]' --comment WHY",
        "  all of them   plan approve p 'each[*]'   or: plan deny p 'each[*]' --comment WHY",
    ]


def test_questions_of_items_are_answered_one_by_one() -> None:
    assert rows(asking("each[a]", QUESTION), asking("each[b]", QUESTION))[:2] == [
        "p  each[*]: 2 await an answer, each its own",
        "  one of them   plan answer p 'each[a]' VALUE",
    ]


def test_a_single_item_has_no_commands_for_all() -> None:
    assert not [row for row in rows(asking("each[a]")) if "[*]" in row]

"""Of a step that is named without the loop or block around it, or with another item, the right ones are named."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.flow.ids import pattern_of, template_of
from plansurvive.plans.run import Run
from plansurvive.plans.run.unknown_step import unknown_step
from tests.plans.flow.player import Player, note, plan


def loop(name: str, items: list[str], *needs: str) -> dict[str, Any]:
    return {"id": name, "dependsOn": list(needs), "forEach": {"items": items, "key": "@"}, "steps": [note("rm")]}


def begun(*items: str) -> Run:
    """A loop and a block that have begun, a loop that waits for a person, one that had no items, and a `finally`."""
    steps = [
        loop("each", list(items or ("cat.png", "dog.png"))),
        {"id": "b", "steps": [note("look")]},
        note("deploy") | {"requiresApproval": True},
        loop("late", ["x"], "deploy") | {"steps": [note("copy"), {"id": "in", "steps": [note("deep")]}]},
        loop("none", []) | {"steps": [note("never")]},
    ]
    return Player(plan(*steps, **{"finally": [note("report")]})).play().run


ITEMS = "there are 'each[cat.png].rm', 'each[dog.png].rm'; 'each[*].rm' names it in all items"
LATE = "inside 'late', which has not started it yet"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rm", ITEMS),
        ("each.rm", ITEMS),
        ("each[0].rm", ITEMS),
        ("each[cow.png].rm", ITEMS),
        ("each[cow.png]", "there are 'each[cat.png]', 'each[dog.png]'; 'each[*]' names it in all items"),
        ("look", "did you mean 'b.look'?"),
        ("deplyo", "did you mean 'deploy'? `plan show` lists its steps"),
        ("nothing", "`plan show` lists its steps"),
        ("copy", f"'late.copy' is {LATE}"),
        ("deep", f"'late.in.deep' is {LATE}"),
        ("never", "'none.never' is inside 'none', which ended without it"),
        ("report", "'finally.report' is inside 'finally', which has not started it yet"),
    ],
)
def test_what_is_said_of_an_unknown_step(name: str, says: str) -> None:
    refusal = unknown_step(name, begun(), pattern_of)
    assert (refusal.code, refusal.message) == ("UNKNOWN_STEP", f"the plan has no step '{name}'; {says}")


@pytest.mark.parametrize("name", ["late.copy", "late[x].copy", "late[*].copy", "late.in.deep"])
def test_of_a_step_whose_loop_has_not_begun_it_is_said_where_it_is(name: str) -> None:
    assert unknown_step(name, begun()).message == f"step '{name}' is {LATE}"


def test_all_items_are_named_as_the_message_takes_it() -> None:
    assert unknown_step("rm", begun(), template_of).message.endswith("; 'each.rm' names it in all items")
    assert unknown_step("rm", begun()).message.endswith("there are 'each[cat.png].rm', 'each[dog.png].rm'")


def test_of_many_items_the_first_are_named() -> None:
    run = begun(*(str(number) for number in range(500)))
    assert "there are 'each[0].rm', 'each[1].rm', 'each[2].rm' and 497 more" in unknown_step("rm", run).message

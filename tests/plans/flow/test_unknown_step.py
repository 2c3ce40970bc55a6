"""Of a step that is named without the loop or block around it, or with another item, the right ones are named."""

from __future__ import annotations

import pytest

from plansurvive.plans.flow.ids import pattern_of, template_of
from plansurvive.plans.flow.unknown_step import unknown_step

KNOWN = ["each", "each[cat.png]", "each[dog.png]", "each[cat.png].rm", "each[dog.png].rm", "b", "b.look", "deploy"]
ITEMS = "there are 'each[cat.png].rm', 'each[dog.png].rm'; 'each[*].rm' names it in all items"


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
    ],
)
def test_what_is_said_of_an_unknown_step(name: str, says: str) -> None:
    refusal = unknown_step(name, KNOWN, pattern_of)
    assert (refusal.code, refusal.message) == ("UNKNOWN_STEP", f"the plan has no step '{name}'; {says}")


def test_all_items_are_named_as_the_message_takes_it() -> None:
    assert unknown_step("rm", KNOWN, template_of).message.endswith("; 'each.rm' names it in all items")
    assert unknown_step("rm", KNOWN).message.endswith("there are 'each[cat.png].rm', 'each[dog.png].rm'")


def test_of_many_items_the_first_are_named() -> None:
    known = [f"each[{number}].rm" for number in range(500)]
    assert "there are 'each[0].rm', 'each[1].rm', 'each[2].rm' and 497 more" in unknown_step("rm", known).message

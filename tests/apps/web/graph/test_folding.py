"""Folding: big plans open with few nodes, nothing is lost, and no group waits for itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from graphlib import TopologicalSorter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.apps.web.graph.folding import ALIKE, FOLD, ROOM, fold, members
from plansurvive.apps.web.graph.tree import Node, tree_of, tree_of_plan
from tests.apps.web.graph.views import MAPPED, layered, plan, view, written

SIZE = 2_122
"""Steps of the biggest workflow among the recorded ones."""


def chain(count: int) -> list[dict[str, Any]]:
    return [written(f"s{at}", [f"s{at - 1}"] if at else []) for at in range(count)]


def levels(nodes: Iterable[Node]) -> Iterable[list[Node]]:
    """The nodes beside each other, at every level."""
    found = list(nodes)
    yield found
    for node in found:
        if node.inside:
            yield from levels(node.inside)


def is_sound(nodes: list[Node]) -> bool:
    """Whether no group waits for itself: whatever is unfolded, the graph has an order."""
    for beside in levels(nodes):
        place = {each.id: node.id for node in beside for each in members(node)}
        needs = {
            node.id: {place[name] for each in members(node) for name in each.needs if name in place} - {node.id}
            for node in beside
        }
        TopologicalSorter(needs).prepare()  # raises CycleError
    return True


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "steps",
    [
        chain(SIZE),
        layered(22, 97),
        layered(300, 8),
        [written(f"s{at}") for at in range(SIZE)],
        [written(f"s{at}", tool=f"tool{at}") for at in range(SIZE)],
        [written(f"s{at}", [f"s{at - 1}"] if at % 7 else [], tool=f"t{at % 5}") for at in range(SIZE)],
        [written("first"), *(written(f"f{at}", ["first"]) for at in range(SIZE))],
    ],
    ids=["chain", "levels", "long and wide", "loose", "all different", "many chains", "fan"],
)
def test_a_plan_of_thousands_of_steps_opens_with_few_nodes_and_loses_none(steps: list[dict[str, Any]]) -> None:
    found = fold(tree_of_plan(plan(steps)))
    assert len(found) <= ROOM
    assert all(len(beside) <= ROOM for beside in levels(found))
    assert Counter(each.id for node in found for each in members(node)) == Counter(step["id"] for step in steps)
    assert is_sound(found)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.integers(1, 40), max_size=3)), min_size=ALIKE, max_size=300)
)
def test_no_group_waits_for_itself(drawn: list[tuple[str, set[int]]]) -> None:
    steps = [
        written(f"{tool}_{at}", sorted(f"{drawn[at - back][0]}_{at - back}" for back in needs if back <= at), tool=tool)
        for at, (tool, needs) in enumerate(drawn)
    ]
    found = fold(tree_of_plan(plan(steps)))
    assert is_sound(found)
    assert Counter(each.id for node in found for each in members(node)) == Counter(step["id"] for step in steps)
    names = [node.id for beside in levels(found) for node in beside]
    assert len(names) == len(set(names))


def test_a_fan_of_like_steps_is_one_group_and_a_small_plan_none() -> None:
    fan = [
        written("a"),
        *(written(f"get_{at}", ["a"]) for at in range(60)),
        written("z", [f"get_{at}" for at in range(60)]),
    ]
    found = fold(tree_of_plan(plan(fan)))
    assert [(node.kind, node.label) for node in found] == [("call", "a"), (FOLD, "60 × get"), ("call", "z")]
    assert all(node.kind != FOLD for node in fold(tree_of_plan(plan(chain(30)))))


def test_blocks_and_loops_stay_as_they_are() -> None:
    tree = tree_of(view(MAPPED))
    assert fold(tree) == tree


def test_steps_of_a_draft_that_wait_for_each_other_are_shown_too() -> None:
    steps = [written(f"s{at}", [f"s{(at + 1) % 400}"]) for at in range(400)]
    found = fold(tree_of_plan(plan(steps)))
    assert sum(1 for node in found for _ in members(node)) == 400
    assert all(len(beside) <= ROOM for beside in levels(found))

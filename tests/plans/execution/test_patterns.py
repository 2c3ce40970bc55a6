"""One decision for all items of a loop: those that await it now, each about its own call; and for all items to come."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.deciding import patterns
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.flow.ids import call_name, covers, of_call
from plansurvive.plans.run import Run
from tests.plans.building import NOW
from tests.plans.flow.player import Player, note, plan


def waiting(items: int = 5, *, window: int | None = None, **fields: Any) -> Player:
    """A loop whose items all await approval."""
    body = {"id": "clean", "tool": "delete_file", "args": {"path": "f{{item}}"}, **fields}
    loop = {"items": list(range(items)), **({"maxParallel": window} if window else {})}
    return Player(plan(body | {"forEach": loop}, note("after", None, "clean"))).play()


def decide(player: Player, name: str, approved: bool = True, **fields: Any) -> dict[str, Any]:
    """Decide as a message does, and let the run go on."""
    message = Decide(step_id=name, approved=approved, **fields)
    answer = patterns.decide(player.run, message, NOW, "update")
    for each in [each for each in player.schedule.awaiting if each in player.run.decisions]:
        player.schedule.answered(each)
    player.play()
    return answer


def statuses(run: Run) -> dict[str, str]:
    return {name: state.status.value for name, state in run.steps.items() if name.startswith("clean[")}


def test_a_pattern_approves_every_item_that_awaits_it_now_with_its_own_digest() -> None:
    player = waiting()
    digests = {name: state.digest for name, state in player.run.steps.items() if state.awaiting}
    answer = decide(player, "clean[*]", by="ann", comment="fine")
    assert (answer["count"], answer["refused"], len(set(digests.values()))) == (5, {}, 5)
    assert {name: player.run.decisions[name].digest for name in digests} == digests
    assert player.run.status == "completed"


def test_one_log_entry_tells_of_all_of_them() -> None:
    player = waiting(30)
    decide(player, "clean[*]", by="ann", comment="fine")
    told = [entry.text for entry in player.run.log if entry.kind == "approved"]
    assert len(told) == 1
    assert told[0].startswith("30 steps 'clean[*]' approved by ann: fine (clean[0], clean[1]")
    assert told[0].endswith("and 10 more)")


def test_a_pattern_denies_alike() -> None:
    player = waiting()
    decide(player, "clean[*]", approved=False)
    assert set(statuses(player.run).values()) == {"skipped"}


def test_digests_name_the_items_that_were_read_and_no_others() -> None:
    player = waiting()
    read = [player.run.steps[name].digest for name in ("clean[1]", "clean[3]")]
    answer = decide(player, "clean[*]", digests=read)
    assert answer["stepIds"] == ["clean[1]", "clean[3]"]
    assert statuses(player.run)["clean[0]"] == "ready"


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("nobody[*]", {}, "NONE_AWAITS"),
        ("clean[*]", {"args": {"path": "x"}}, "INVALID_ARGS"),
        ("clean[*]", {"digest": "a" * 64}, "BAD_MESSAGE"),
        ("clean[*]", {"digests": ["a" * 64]}, "STALE_DIGEST"),
        ("clean[0]", {"digests": ["a" * 64]}, "BAD_MESSAGE"),
    ],
)
def test_a_decision_that_cannot_be_meant_is_refused_and_changes_nothing(
    name: str, fields: dict[str, Any], code: str
) -> None:
    player = waiting()
    before = player.run.model_copy(deep=True)
    with pytest.raises(Refused) as refused:
        patterns.decide(player.run, Decide(step_id=name, approved=True, **fields), NOW, "signal")
    assert refused.value.code == code
    assert player.run == before


def test_remember_approves_the_step_for_all_items_to_come() -> None:
    player = waiting(6, window=2, requiresApproval=True)
    decide(player, "clean[0]", remember=True, by="ann")
    assert player.run.status == "completed"
    assert set(statuses(player.run).values()) == {"completed"}


def test_remember_inside_a_loop_is_not_for_other_steps_of_the_same_tool() -> None:
    other = {"id": "other", "tool": "delete_file", "args": {"path": "o"}, "dependsOn": ["clean"]}
    body = {"id": "clean", "tool": "delete_file", "args": {"path": "f{{item}}"}, "forEach": [1, 2]}
    player = Player(plan(body, other)).play()
    decide(player, "clean[0]", remember=True)
    assert player.run.steps["other"].awaiting == "approval"


def test_a_remembered_step_asks_again_for_what_a_person_has_denied_or_where_approvals_are_strict() -> None:
    player = waiting(2)
    player.run.facts = player.run.facts.model_copy(update={"strict_approvals": True})
    decide(player, "clean[0]", remember=True)
    assert player.run.steps["clean[1]"].awaiting == "approval"


@pytest.mark.parametrize(
    ("asked", "step_id", "found"),
    [
        ("a", "a", True), ("a", "a[x].b", True), ("a", "a#2", True), ("a", "ab", False), ("a[x]", "a[x].b", True),
        ("a[x]", "a[x.y]", False), ("a[x", "a[x.y]", False), ("a[*].b", "a[x].b[z]", True),
        ("a[*].b", "a[x].bc", False), ("a[*]", "a[x].b", True), ("a[*]", "a", False),
    ],
)  # fmt: skip
def test_what_a_person_names_covers_what_is_inside_it(asked: str, step_id: str, found: bool) -> None:
    assert covers(asked, step_id) is found


@pytest.mark.parametrize(
    "step_id", ["write", "a[x]", "a[x#2]", "a[x@2]", "poll#2", "a[x]#3", "a.b#1.c", "a[img/c.png].b"]
)
@pytest.mark.parametrize("number", [1, 2, 12])
def test_the_name_of_a_call_tells_its_step_and_number(step_id: str, number: int) -> None:
    assert of_call(call_name(step_id, number)) == (step_id, number)


def test_the_first_call_of_an_instance_is_named_like_it() -> None:
    assert [call_name(each, 1) for each in ("write", "a[x]", "a[x].b")] == ["write", "a[x]", "a[x].b"]
    assert call_name("write", 2) == "write#2"

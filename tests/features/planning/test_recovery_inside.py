"""Recovery by the LLM of a step that failed inside a loop: for that item alone, with what belongs to it."""

from __future__ import annotations

from typing import Any

from plansurvive.features.planning import recovery
from plansurvive.features.planning.earlier_calls import HISTORY, history
from plansurvive.plans.execution.revision import put_into_effect
from plansurvive.plans.llm.answers import Recovery
from plansurvive.plans.run import Result
from tests.plans.building import NOW
from tests.plans.editing.changing import approve, pictures
from tests.plans.flow.player import Player, note, plan

CAT, DOG = "resize[cat.png].thumb", "resize[dog.png].thumb"
FAILURE = Result(ok=False, error="it broke", code="TOOL_FAILED", timestamp=NOW)


def failed(*keys: str, name: str = CAT) -> Player:
    """A loop in which one thumbnail awaits its recovery, and the others await approval."""
    played = Player(pictures(*(keys or ("cat.png", "dog.png")), defaults={"onFailure": "ask_llm"})).play()
    return fail(played, name)


def fail(played: Player, name: str) -> Player:
    """The step fails, and awaits its recovery."""
    played.decide(name, digest=played.run.steps[name].digest)
    played.schedule.start(name, NOW)
    played.run.steps[name].failure = FAILURE
    played.schedule.ask(name, NOW, awaiting="recovery")
    return played


def apply(played: Player, name: str, **choice: Any) -> None:
    """Carry a choice out, as the workflow does."""
    found = Recovery.model_validate({"reason": "best", **choice})
    step = played.schedule.step(name)
    assert recovery.choice_problems(played.run, step, found, NOW) == []
    revised = recovery.applied(played.run, step, found, NOW)
    played.run.steps[name].failure = None
    played.schedule.answered(name)
    if revised is not None:
        put_into_effect(played.schedule, revised, NOW)


def test_a_retry_with_other_arguments_changes_that_item_alone() -> None:
    played = failed()
    apply(played, CAT, action="retry", args={"text": "mended {{item}}"})
    approve(played, CAT, DOG)
    assert [each["thumb"] for each in played.value("resize")] == ["mended cat.png", "small dog.png"]
    assert (played.run.revisions[-1].by, played.run.plan.steps[0].steps) == ("llm", pictures("x").plan.steps[0].steps)


def test_inserted_steps_run_in_that_item_before_the_step_is_tried_again() -> None:
    played = failed()
    apply(played, CAT, action="insert", steps=[note("fix", "fixed {{item}}")])
    approve(played, DOG)  # what was approved for the cat is the same call still
    assert [name for name in played.called if name in ("resize[cat.png].fix", CAT)] == ["resize[cat.png].fix", CAT]
    assert [sorted(each) for each in played.value("resize")] == [["fix", "load", "thumb"], ["load", "thumb"]]


def test_steps_cannot_be_inserted_before_an_item_that_is_no_block() -> None:
    send = note("send", "$item") | {"forEach": ["a", "b"], "requiresApproval": True, "onFailure": "ask_llm"}
    played = fail(Player(plan(send)).play(), "send[0]")
    choice = Recovery.model_validate({"action": "insert", "steps": [note("fix", "x")]})
    (problem,) = recovery.choice_problems(played.run, played.schedule.step("send[0]"), choice, NOW)
    assert "'send[0]'" in problem
    assert "choose retry, skip or abort" in problem
    apply(played, "send[0]", action="retry", args={"text": "x"})
    approve(played, "send[0]", "send[1]")
    assert played.value("send") == ["x", "b"]


def test_each_item_may_be_recovered_twice_and_the_plan_five_times() -> None:
    played = failed()
    run = played.run
    assert recovery.is_due(run, played.schedule.step(CAT), FAILURE)
    run.steps[CAT].recoveries = recovery.PER_STEP
    assert not recovery.is_due(run, played.schedule.step(CAT), FAILURE)
    assert recovery.is_due(run, played.schedule.step(DOG), FAILURE)
    assert not recovery.is_due(run, played.schedule.step("resize"), FAILURE)
    run.recoveries = recovery.PER_PLAN
    assert not recovery.is_due(run, played.schedule.step(DOG), FAILURE)


def test_the_prompt_shows_the_item_and_nothing_of_the_others() -> None:
    played = failed()
    for number, name in enumerate(played.called):
        played.run.steps[name].calls = number + 1
    text = recovery.prompt(played.run, played.schedule.step(CAT), FAILURE).user
    assert '{"item": "cat.png", "index": 0, "key": "cat.png"}' in text
    assert "dog" not in text
    assert 'note {"text": "{{item}}"} [SUCCESS]: cat.png' in text
    assert '"after"' in text


def test_the_prompt_of_a_loop_over_hundreds_of_items_stays_as_short() -> None:
    few, many = failed("cat.png", "dog.png"), failed("cat.png", *(f"p{number}" for number in range(450)))
    for played in (few, many):
        for name in played.called:
            played.run.steps[name].calls = 1
    sizes = [len(recovery.prompt(each.run, each.schedule.step(CAT), FAILURE).user) for each in (few, many)]
    assert sizes[1] - sizes[0] < 10_000
    assert len(history(many.run)) == HISTORY


def test_a_step_that_the_llm_inserted_into_an_item_waives_no_approval() -> None:
    played = failed()
    drop = {"id": "drop", "tool": "delete_file", "args": {"path": "x"}, "requiresApproval": False}
    apply(played, CAT, action="insert", steps=[drop])
    played.play()
    assert played.run.steps["resize[cat.png].drop"].awaiting == "approval"

"""Edits inside blocks and loops in the runs that follow: what they take over, and what `--set` may change there."""

from __future__ import annotations

import pytest

from plansurvive.plans.editing.next_run import Replacement
from plansurvive.plans.errors import Refused
from plansurvive.plans.execution.resume import rerun_from, resumed
from plansurvive.plans.run import Run, run_of, text_of
from plansurvive.workflows.run_check import problem_of
from tests.plans.building import NOW
from tests.plans.editing.changing import approve, begun, change, pictures, setting
from tests.plans.flow.player import Failure, Player, broken, note, plan

CAT, DOG, EEL = "resize[cat.png].thumb", "resize[dog.png].thumb", "resize[eel.png].thumb"


def ended() -> Run:
    """A run in which the dog's thumbnail failed, and the others were made."""
    keys = ("cat.png", "dog.png", "eel.png")
    return Player(pictures(*keys, asks=False), broken(DOG)).play().run


def again(run: Run, *changes: tuple[str, str, object], start_at: str = "") -> Player:
    """The next run, played to its end."""
    sets = [Replacement(step_id=name, path=path, value=value) for name, path, value in changes]
    new = rerun_from(run, start_at, "p-r2", NOW, "", sets) if start_at else resumed(run, "p-r2", NOW, "", sets)
    new = run_of(text_of(new))
    assert problem_of(new, NOW) is None
    return Player(new).play()


@pytest.mark.parametrize("name", ["resize.thumb", DOG])
def test_a_resume_changes_what_runs_again_inside_a_loop_and_nothing_that_is_done(name: str) -> None:
    played = again(ended(), (name, "args.text", "big {{item}}"))
    assert played.called == [DOG, "after"]
    assert [each["thumb"] for each in played.value("resize")] == ["small cat.png", "big dog.png", "small eel.png"]
    assert played.run.outline.step(CAT).args == {"text": "small {{item}}"}
    assert played.run.plan.version == 2


def test_a_rerun_of_a_loop_takes_a_change_of_its_steps() -> None:
    played = again(ended(), ("resize.thumb", "args.text", "big {{item}}"), start_at="resize")
    assert [each["thumb"] for each in played.value("resize")] == ["big cat.png", "big dog.png", "big eel.png"]


@pytest.mark.parametrize(
    ("name", "path", "code"),
    [
        (CAT, "args.text", "TOO_LATE"),
        ("resize[cat.png]", "when", "TOO_LATE"),
        ("resize[dog.png].load", "args.text", "TOO_LATE"),
        ("resize.load", "args.text", "TOO_LATE"),
        ("resize.nobody", "args.text", "UNKNOWN_STEP"),
        ("resize[nobody].thumb", "args.text", "UNKNOWN_STEP"),
        (DOG, "tool", "BAD_EDIT"),
        (DOG, "timeout", "BAD_EDIT"),
        ("resize.thumb", "steps", "BAD_EDIT"),
    ],
)
def test_only_what_runs_again_can_be_changed(name: str, path: str, code: str) -> None:
    run = ended()
    before = text_of(run)
    with pytest.raises(Refused) as refused:
        again(run, (name, path, "x"))
    assert refused.value.code == code
    assert text_of(run) == before


def test_a_field_without_a_step_is_answered_with_the_steps() -> None:
    with pytest.raises(Refused, match=r"write STEP\.args\.text, where STEP is one of 'resize', 'after'"):
        again(ended(), ("args", "text", "x"))


def test_a_step_that_no_item_has_got_to_can_be_changed() -> None:
    run = Player(pictures("cat.png", asks=False, more=(note("tell", "x", "thumb"),)), broken(CAT)).play().run
    played = again(run, ("resize.tell", "args.text", "y"))
    assert played.value("resize")[0]["tell"] == "y"


def test_edits_of_items_are_taken_over_and_pins_end_where_a_step_runs_again() -> None:
    played = begun()
    played.tool = broken(CAT)
    approve(played, CAT)
    change(played, setting(DOG, "args.text", "dog"), setting("resize.thumb", "args.text", "all {{item}}"))
    approve(played, DOG)
    played.decide(EEL, approved=False, digest=played.run.steps[EEL].digest)
    played.play()
    assert played.run.pins.keys() == {CAT}
    following = again(played.run)
    approve(following, CAT, EEL)
    assert [each["thumb"] for each in following.value("resize")] == ["all cat.png", "dog", "all eel.png"]
    assert following.run.pins == {}


def test_what_an_approver_changed_inside_a_loop_is_part_of_the_next_run() -> None:
    played = begun("cat.png")
    played.tool = broken(CAT)
    played.decide(CAT, digest=played.run.steps[CAT].digest, args={"text": "mine"})
    played.play()
    following = again(played.run)
    approve(following, CAT)
    assert following.value("resize") == [{"load": "cat.png", "thumb": "mine"}]


def test_steps_added_to_an_item_run_again_with_it() -> None:
    played = begun()
    change(played, {"op": "add", "step": note("crop", "x", "thumb"), "after": DOG})
    played.tool = broken("resize[dog.png].crop")
    approve(played, CAT, DOG, EEL)
    following = again(played.run)
    assert following.called == ["resize[dog.png].crop", "after"]


def test_edits_that_nobody_can_have_made_are_refused_with_the_run() -> None:
    run = run_of(text_of(resumed(ended(), "p-r2", NOW)))
    step = run.plan.steps[1].model_copy(update={"id": "step"})
    deep = note("x")
    for _ in range(20):
        deep = {"id": "x", "steps": [deep]}
    for name, own in (
        ("after", step),
        ("nobody[1]", step),
        ("resize[" + 1_000 * "x" + "]", step),
        ("resize[cat.png].deep", plan(deep).plan.steps[0]),
    ):
        for field in ("overrides", "pins"):
            wrong = run_of(text_of(run.model_copy(update={field: {name: own}})))
            assert (problem_of(wrong, NOW) or "").startswith(f"run.{field}.")
    many = {f"resize[{number}].thumb": step for number in range(80_001)}
    assert "more than" in (problem_of(run.model_copy(update={"overrides": many}), NOW) or "")


def test_an_alternative_that_the_plan_does_not_have_is_chosen_again() -> None:
    choice = {"id": "choice", "switch": [{"steps": [note("only", "{{item}}")]}]}
    fails = {"id": "fails", "tool": "read_file", "args": {"path": "x"}, "dependsOn": ["choice"]}
    loop = {"id": "each", "forEach": {"items": ["a", "b"], "key": "@"}, "steps": [choice, fails]}
    ended = Player(plan(loop), lambda name, _: 1 if name.endswith("only") else _refuse()).play().run
    new = resumed(ended, "p-r2", NOW)
    assert new.kept.opened["each[a].choice"].case == 0
    new.kept.opened["each[a].choice"].case = 7
    new.kept.opened["each[b].choice"].handler = 7
    played = Player(new, lambda *_: 2).play()
    assert [each["choice"] for each in played.value("each")] == [{"only": 1}] * 2, "what is done inside stays done"


def _refuse() -> None:
    raise Failure("NO")

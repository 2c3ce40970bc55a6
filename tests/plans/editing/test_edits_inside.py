"""Edits of the steps inside blocks and loops, while some of them are done and others wait."""

from __future__ import annotations

import sys

import pytest

from plansurvive.plans.editing.apply_edits import revise
from plansurvive.plans.editing.edits import Edits
from plansurvive.plans.errors import InvalidPlan, Refused
from plansurvive.plans.execution import approvals
from plansurvive.plans.execution.messages import Decide
from plansurvive.plans.execution.revision import warnings_of
from plansurvive.plans.run import run_of, text_of
from tests.plans.building import NOW
from tests.plans.editing.changing import approve, begun, change, pictures, setting
from tests.plans.flow.player import Failure, Player, note, plan

CAT, DOG, EEL = "resize[cat.png].thumb", "resize[dog.png].thumb", "resize[eel.png].thumb"


def test_an_edit_of_a_loops_step_holds_for_every_item_that_has_not_got_to_it() -> None:
    played = begun()
    played.decide(CAT)
    played.play()
    change(played, setting("resize.thumb", "args.text", "tiny {{item}}"))
    approve(played, DOG, EEL)
    found = [each["thumb"] for each in played.value("resize")]
    assert found == ["small cat.png", "tiny dog.png", "tiny eel.png"]
    assert played.run.outline.step(CAT).args == {"text": "small {{item}}"}


def test_an_edit_of_an_item_is_about_that_item_alone_and_outlives_an_edit_of_the_loop() -> None:
    played = begun()
    change(played, setting(DOG, "args.text", "dog only"))
    change(played, setting("resize.thumb", "args.text", "all {{item}}"))
    approve(played, CAT, DOG, EEL)
    assert [each["thumb"] for each in played.value("resize")] == ["all cat.png", "dog only", "all eel.png"]


def test_an_edited_step_inside_an_item_asks_again_and_takes_no_decision_that_does_not_say_what_about() -> None:
    played = begun()
    played.run.decisions.clear()
    approvals.decide(played.run, Decide(step_id=CAT, approved=True), NOW, "signal")
    change(played, setting("resize.thumb", "args.text", "rm {{item}}"))
    assert CAT not in played.run.decisions
    assert played.run.steps[CAT].awaiting is None
    played.play()
    assert played.run.steps[CAT].awaiting == "approval"
    for name in (CAT, DOG):
        with pytest.raises(Refused) as refused:
            played.decide(name)
        assert refused.value.code == "DIGEST_REQUIRED"


def test_a_step_that_begins_to_ask_after_an_edit_of_its_loop_takes_no_blind_decision_either() -> None:
    played = Player(pictures("cat.png", more=(note("pay", "1 {{item}}", "thumb") | {"requiresApproval": True},))).play()
    change(played, setting("resize.pay", "args.text", "1000 {{item}}"))
    with pytest.raises(Refused) as refused:
        played.decide("resize[cat.png].pay")
    assert refused.value.code == "DIGEST_REQUIRED"


def test_a_waiver_inside_a_loop_ends_with_an_edit() -> None:
    remove = {"id": "drop", "tool": "delete_file", "args": {"path": "{{item}}"}, "requiresApproval": False}
    played = begun(more=(remove | {"dependsOn": ["thumb"]},))
    change(played, setting("resize[cat.png].drop", "args.path", "other"))
    for name in (CAT, DOG):
        played.decide(name)
    played.play()
    assert played.run.steps["resize[cat.png].drop"].awaiting == "approval"
    assert played.statuses("resize[dog.png].drop") == ["completed"]


def test_a_waiver_set_by_an_edit_waives_nothing_for_any_item() -> None:
    remove = {"id": "drop", "tool": "delete_file", "args": {"path": "{{item}}"}, "dependsOn": ["thumb"]}
    played = begun(more=(remove,))
    change(played, setting("resize.drop", "requiresApproval", False))
    change(played, setting("resize[dog.png].drop", "requiresApproval", False))
    for name in (CAT, DOG):
        played.decide(name)
    played.play()
    assert {played.run.steps[f"resize[{key}].drop"].awaiting for key in ("cat.png", "dog.png")} == {"approval"}


def test_a_block_that_awaits_approval_asks_again_when_a_step_inside_it_is_edited() -> None:
    block = {"id": "pay", "requiresApproval": True, "steps": [note("send", "1")]}
    played = Player(plan(block)).play()
    before = played.run.steps["pay"].digest
    change(played, setting("pay.send", "args.text", "1000"))
    assert played.run.steps["pay"].awaiting is None
    played.play()
    assert played.run.steps["pay"].digest not in ("", before)
    with pytest.raises(Refused) as refused:
        played.decide("pay")
    assert refused.value.code == "DIGEST_REQUIRED"


def test_a_step_is_added_to_one_item_and_others_may_use_it() -> None:
    played = begun()
    change(
        played,
        {"op": "add", "step": note("crop", "cropped {{item}} of $load", "load"), "before": CAT},
        setting(CAT, "dependsOn", ["load", "crop"]),
    )
    played.play()
    assert played.called[-1] == "resize[cat.png].crop"
    approve(played, CAT, DOG, EEL)
    assert [sorted(each) for each in played.value("resize")] == [["crop", "load", "thumb"], *2 * [["load", "thumb"]]]


def test_a_step_that_another_one_uses_is_not_removed_from_an_item() -> None:
    played = begun(more=(note("tell", "$thumb"),))
    with pytest.raises(InvalidPlan) as refused:
        change(played, {"op": "remove", "stepId": CAT})
    assert {problem.step_id for problem in refused.value.problems} == {"resize[cat.png].tell"}
    says = f"'{CAT}' cannot be removed, as step 'resize[cat.png].tell' uses its value; "
    assert all(problem.message.startswith(says) for problem in refused.value.problems), refused.value
    change(played, {"op": "remove", "stepId": "resize[cat.png].tell"})
    assert "resize[cat.png].tell" not in played.run.steps
    assert "resize[dog.png].tell" in played.run.steps


def test_steps_of_an_item_that_would_wait_for_each_other_are_refused() -> None:
    played = begun(more=(note("tell", "$thumb"),))
    with pytest.raises(InvalidPlan) as refused:
        change(played, setting(CAT, "dependsOn", ["tell"]))
    assert [problem.code for problem in refused.value.problems] == ["PLAN_CYCLE", "BAD_REFERENCE"]


@pytest.mark.parametrize("field", ["dependsOn", "args.text"])
def test_a_step_of_an_item_uses_nothing_that_does_not_exist(field: str) -> None:
    played = begun()
    with pytest.raises(InvalidPlan):
        change(played, setting(CAT, field, ["nobody"] if field == "dependsOn" else "$nobody"))


@pytest.mark.parametrize("step_id", ["resize.thumb", CAT])
def test_what_is_inside_a_loop_that_runs_cannot_use_a_step_that_nothing_inside_waits_for(step_id: str) -> None:
    slow = note("slow", "x") | {"requiresApproval": True}
    thumb = note("thumb", "x") | {"requiresApproval": True}
    played = Player(
        plan(slow, {"id": "resize", "forEach": {"items": ["cat.png"], "key": "@"}, "steps": [thumb]})
    ).play()
    with pytest.raises(Refused) as refused:
        change(played, setting(step_id, "args.text", "$slow"))
    assert refused.value.code == "TOO_EARLY"
    approve(played, "slow")
    change(played, setting(step_id, "args.text", "$slow"))


def test_an_item_is_skipped_and_taken_back() -> None:
    played = begun(more=(note("tell", "x", "thumb"),))
    change(played, {"op": "skip", "stepId": "resize[cat.png].tell"}, {"op": "skip", "stepId": DOG})
    assert played.statuses("resize[cat.png].tell", DOG) == ["skipped", "skipped"]
    change(played, {"op": "unskip", "stepId": "resize[cat.png].tell"})
    approve(played, CAT)
    with pytest.raises(Refused) as refused:
        change(played, {"op": "unskip", "stepId": "resize[cat.png].tell"})
    assert refused.value.code == "TOO_LATE"
    approve(played, EEL)
    assert played.statuses("resize", "resize[cat.png].tell", DOG) == ["completed", "completed", "skipped"]
    assert "resize[cat.png].tell" in played.called


def test_an_item_that_awaits_approval_is_skipped_as_a_whole() -> None:
    run = plan(
        {"id": "send", "forEach": ["a", "b"], "requiresApproval": True, "tool": "note", "args": {"text": "$item"}}
    )
    played = Player(run).play()
    change(played, {"op": "skip", "stepId": "send[0]"})
    played.decide("send[1]")
    played.play()
    assert played.value("send") == [None, "b"]


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({"op": "remove", "stepId": "resize[cat.png]"}, "TOO_LATE"),
        ({"op": "add", "step": note("x"), "after": "resize[cat.png]"}, "NOT_A_BLOCK"),
        ({"op": "add", "step": note("x"), "after": "resize.load"}, "TOO_LATE"),
        ({"op": "remove", "stepId": "resize.load"}, "TOO_LATE"),
        ({"op": "skip", "stepId": "resize.thumb"}, "TOO_EARLY"),
        ({"op": "move", "stepId": CAT}, "BAD_MOVE"),
        ({"op": "move", "stepId": "resize.thumb"}, "BAD_MOVE"),
        ({"op": "set", "stepId": "resize[cat.png].load", "path": "args.text", "value": "x"}, "TOO_LATE"),
        ({"op": "set", "stepId": "resize", "path": "forEach.items", "value": []}, "TOO_LATE"),
        ({"op": "set", "stepId": "resize[nobody].thumb", "path": "args.text", "value": "x"}, "UNKNOWN_STEP"),
        ({"op": "set", "stepId": "resize.nobody", "path": "args.text", "value": "x"}, "UNKNOWN_STEP"),
        ({"op": "set", "stepId": "resize." + 990 * "x", "path": "args.text", "value": "x"}, "UNKNOWN_STEP"),
        ({"op": "set", "stepId": CAT, "path": "id", "value": "x"}, "UNKNOWN_FIELD"),
        ({"op": "remove", "stepId": "resize[cat.png].thumb.catch.x"}, "UNKNOWN_STEP"),
        ({"op": "add", "step": note("load"), "after": CAT}, "PLAN_DUPLICATE_ID"),
    ],
)
def test_what_cannot_be_edited_is_refused_and_nothing_of_the_message_happens(
    edit: dict[str, object], code: str
) -> None:
    played = begun()
    before = text_of(played.run)
    with pytest.raises(Refused) as refused:
        change(played, setting(DOG, "args.text", "x"), edit)
    assert refused.value.code == code
    assert text_of(played.run) == before


def test_a_loop_inside_a_loop_cannot_be_another_one_once_it_has_begun_for_an_item() -> None:
    inner = {"id": "parts", "forEach": [1, 2], "steps": [note("ask", "{{item}}") | {"requiresApproval": True}]}
    played = Player(plan({"id": "all", "forEach": {"items": ["a"], "as": "name"}, "steps": [inner]})).play()
    for path, value in (("steps", [note("other", 1)]), ("forEach", [1]), ("output", "ask")):
        with pytest.raises(Refused) as refused:
            change(played, setting("all.parts", path, value))
        assert refused.value.code == "TOO_LATE"
    change(
        played, setting("all.parts.ask", "args.text", "{{name}}"), setting("all[0].parts[1].ask", "args.text", "2nd")
    )
    approve(played, "all[0].parts[0].ask", "all[0].parts[1].ask")
    assert played.value("all") == [{"parts": [{"ask": "a"}, {"ask": "2nd"}]}]


def test_a_block_that_is_done_with_its_steps_cannot_be_edited_behind_them() -> None:
    last = note("tidy", "x") | {"requiresApproval": True}
    played = Player(plan({"id": "work", "steps": [note("a", 1), note("b", 2)], "finally": [last]})).play()
    assert played.run.steps["work.finally.tidy"].awaiting == "approval"
    with pytest.raises(Refused) as refused:
        change(played, {"op": "add", "step": note("c", 3), "after": "work.b"})
    assert refused.value.code == "TOO_LATE"
    change(played, setting("work.finally.tidy", "args.text", "other"))
    change(played, {"op": "add", "step": note("more", 4), "after": "work.finally.tidy"})
    approve(played, "work.finally.tidy")
    assert played.statuses("work", "work.finally.more") == ["completed", "completed"]
    assert played.value("work.finally.tidy") == "other"


def test_the_steps_of_a_catch_and_of_the_alternative_that_runs_can_be_edited() -> None:
    def tool(name: str, args: dict[str, object]) -> object:
        if name.endswith(".try"):
            raise Failure("BROKEN")
        return args.get("text")

    tell = note("tell", "{{error.code}}") | {"requiresApproval": True}
    cases = [{"when": "`false`", "steps": [note("no")]}, {"steps": [note("try") | {"catch": [{"steps": [tell]}]}]}]
    played = Player(plan({"id": "one", "switch": cases}), tool).play()
    assert played.run.steps["one.try.catch.tell"].awaiting == "approval"
    change(
        played,
        setting("one.try.catch.tell", "args.text", "it was {{error.code}}"),
        {"op": "add", "step": note("more", "x", "tell"), "after": "one.try.catch.tell"},
        {"op": "add", "step": note("beside", "y"), "after": "one.try"},
    )
    approve(played, "one.try.catch.tell")
    assert played.value("one") == {"try": {"tell": "it was BROKEN", "more": "x"}, "beside": "y"}


def test_steps_are_added_and_removed_in_blocks_that_have_not_begun() -> None:
    block = {"id": "work", "dependsOn": ["first"], "forEach": [1], "steps": [note("a", 1), note("b", 2)]}
    cases = [{"when": "`false`", "steps": [note("no")]}, {"steps": [note("yes")]}]
    other = {"id": "one", "switch": cases, "dependsOn": ["work"]}
    played = Player(plan(note("first") | {"requiresApproval": True}, block, other)).play()
    change(
        played,
        {"op": "add", "step": note("c", 3), "before": "work.b"},
        {"op": "remove", "stepId": "work.a"},
        {"op": "add", "step": note("more"), "after": "one.yes"},
    )
    assert [step.id for step in played.run.plan.steps[1].steps or []] == ["c", "b"]
    played.decide("first")
    played.play()
    assert (played.value("work"), sorted(played.value("one"))) == ([{"c": 3, "b": 2}], ["more", "yes"])


def test_edits_outlive_continuing_as_new() -> None:
    played = begun()
    played.decide(CAT)
    played.play()
    change(played, setting("resize.thumb", "args.text", "all {{item}}"), setting(EEL, "args.text", "eel"))
    change(played, {"op": "add", "step": note("crop", "x"), "after": DOG})
    again = Player(run_of(text_of(played.run)), reload=True)
    approve(again, DOG, EEL)
    assert [each["thumb"] for each in again.value("resize")] == ["small cat.png", "all dog.png", "eel"]
    assert again.value("resize")[1]["crop"] == "x"


def test_the_change_log_names_what_was_edited_inside_and_counts_what_it_does_not_list() -> None:
    played = begun(*(f"p{number}" for number in range(150)))
    names = [f"resize[p{number}].thumb" for number in range(150)]
    revised = change(played, *(setting(name, "args.text", "x") for name in names))
    assert revised.revision.diff[0] == '~ resize[p0].thumb.args.text: "small {{item}}" -> "x"'
    assert (len(revised.revision.diff), revised.revision.diff[-1]) == (101, "and 50 more")


def test_a_plan_that_has_ended_is_not_edited_inside_either() -> None:
    played = begun()
    approve(played, CAT, DOG, EEL)
    with pytest.raises(Refused) as refused:
        change(played, setting(CAT, "args.text", "x"))
    assert refused.value.code == "PLAN_CLOSED"


@pytest.mark.slow
@pytest.mark.in_turn
def test_many_edits_of_single_items_cost_little_more_than_one() -> None:
    names = [f"p{number}" for number in range(400)]
    played = begun(*names)
    edits = [setting(f"resize[{name}].thumb", "args.text", "x") for name in names[:200]]
    once, often = _calls(played, edits[:1]), _calls(played, edits)
    assert often < once + 200 * 2_000


def _calls(played: Player, edits: list[dict[str, object]]) -> int:
    """How many functions are called to judge the edits."""
    message, count = Edits.model_validate({"edits": edits}), 0

    def called(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        revise(played.run, message, NOW)
    finally:
        sys.setprofile(before)
    return count


def test_a_skip_inside_an_item_tells_which_steps_it_blocks() -> None:
    played = begun(more=(note("tell", "$thumb"), note("late", "x", "thumb")))
    revised = change(played, {"op": "skip", "stepId": CAT})
    (warning,) = warnings_of(played.run, revised)
    assert warning.startswith(f"'resize[cat.png].tell' uses the value of '{CAT}'")
    assert played.run.steps["resize[cat.png].tell"].permanently_blocked


def test_a_step_that_gets_the_id_of_a_removed_one_is_not_edited_as_that_was() -> None:
    played = begun(more=(note("tell", "x", "thumb"),))
    name = "resize[cat.png].tell"
    change(played, setting(name, "args.text", "edited"))
    again = {"op": "add", "step": note("tell", "another", "thumb"), "after": CAT}
    with pytest.raises(Refused):
        change(played, {"op": "remove", "stepId": name}, again)
    change(played, {"op": "remove", "stepId": name})
    change(played, again)
    assert played.run.outline.step(name).args == {"text": "another"}


def test_the_change_log_keeps_whole_ids_and_stays_short() -> None:
    inner = {"id": "parts", "forEach": {"items": ["y" * 115 + str(number) for number in range(150)], "key": "@"}}
    ask = note("ask", 1) | {"requiresApproval": True}
    middle = {"id": "middle", "forEach": {"items": ["z" * 118], "key": "@"}, "steps": [inner | {"steps": [ask]}]}
    played = Player(plan({"id": "all", "forEach": {"items": ["x" * 118], "key": "@"}, "steps": [middle]})).play()
    names = [name for name, state in played.run.steps.items() if state.awaiting]
    assert len(names[0]) > 350
    lines = change(played, *(setting(name, "args.text", 2) for name in names)).revision.diff
    assert lines[0] == f"~ {names[0]}.args.text: 1 -> 2"
    assert lines[-1] == f"and {150 - len(lines) + 1} more"
    assert sum(len(line) for line in lines) < 21_000

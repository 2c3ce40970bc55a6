"""The review screen at the keys: what is shown, and that every change is the plan's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.apps.review.around import OVERWRITES, Around
from plansurvive.client.decide.shown import CHANGE, NOW
from plansurvive.plans.editing.edits import RemoveStep, SetField, SkipStep
from plansurvive.plans.views.models import PlanView, StepView
from tests.apps.review.conftest import LIST, REMOVE, STEPS, WRITE, Open

LONG = {"id": "nap", "tool": "sleep", "args": {"seconds": 3600}, "dependsOn": ["remove"]}


async def test_every_step_is_shown_with_tool_arguments_dependencies_and_approval_mark(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.until_shown("Copy a file  review  version 1  5 steps")
        rows = screen.text.splitlines()
        assert "☐ 1 write" in rows[1]
        assert "write_file" in rows[1]
        assert "after 1  Read it" in rows[2]
        assert '{"path": "a.txt"}' in rows[2]
        assert rows[5].endswith("⚠ approval")
        await screen.choose("remove")
        await screen.until_shown("tool         delete_file, ⚠ needs approval")
        await screen.until_shown("after        copy")


async def test_a_step_is_edited_in_the_form_of_its_tool(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.open_form("path  text, required")
        await screen.append(".new")
        await screen.press("ctrl+s")
        await screen.until_version(2)
        view = await screen.view()
        assert view.steps[0].args == {"path": "a.txt.new", "content": "one\ntwo"}
        assert view.changes[0].by == "bob"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_what_the_plan_refuses_is_said_at_its_field_and_stays_typed(open_screen: Open) -> None:
    async with open_screen(*STEPS, {"id": "nap", "tool": "sleep", "args": {"seconds": 1}}) as screen:
        await screen.choose("nap")
        await screen.open_form("seconds  number, required")
        await screen.append("x")
        await screen.press("ctrl+s")
        await screen.until_shown("✗ '1x' is not a number")
        await screen.press("backspace", "home")
        await screen.type("-")
        await screen.press("ctrl+s")
        await screen.until_shown("-1 is less than the minimum of 0")
        await screen.until_shown("Not saved")
        await screen.press("delete", "backspace")
        await screen.type("2")
        assert (await screen.saved_as(2))[5] == {"seconds": 2}


async def test_a_form_is_left_without_saving_only_when_asked_twice(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.open_form("ctrl+s save")
        await screen.type("x")
        await screen.press("escape")
        await screen.until_shown("press escape again")
        await screen.press("escape")
        await screen.until(lambda: "ctrl+s save" not in screen.text, "the form is closed")
        assert (await screen.view()).version == 1


async def test_a_step_moves_within_what_its_dependencies_allow(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.choose("list")
        await screen.press("shift+up")
        await screen.until(lambda: screen.order[2] == "list", "list moved")
        await screen.press("K")
        await screen.until(lambda: screen.order[1] == "list", "list moved again")
        await screen.choose("write")
        await screen.press("shift+down", "shift+down")
        await screen.until(lambda: "'read', which depends on it" in screen.said, "the reason")
        assert screen.order == ["list", "write", "read", "copy", "remove"]
        assert [step.id for step in (await screen.view()).steps] == screen.order


async def test_a_step_is_skipped_and_the_skip_taken_back(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.choose("list")
        await screen.press("s")
        await screen.until(lambda: screen.app.steps[3].status == "skipped", "skipped")
        await screen.until(lambda: screen.text.splitlines()[4].startswith("–"), "the mark")
        assert screen.text.splitlines()[4].endswith("skipped")
        await screen.press("s")
        await screen.until(lambda: screen.app.steps[3].status == "pending", "not skipped")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_step_is_added_with_a_tool_found_by_typing(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.press("a")
        await screen.until_shown("Which tool?")
        await screen.type("direct")
        await screen.press("down", "enter")
        await screen.until_shown("Add a step  list_directory")
        await screen.press("ctrl+s")
        await screen.until(lambda: "step_1" in screen.order and screen.is_bare, "the new step")
        assert screen.order[:2] == ["write", "step_1"]
        await screen.choose("step_1")
        await screen.press("x")
        await screen.until_shown("Remove step 'step_1'?")
        await screen.press("y")
        await screen.until(lambda: "step_1" not in screen.order, "it is removed")


async def test_what_others_depend_on_is_not_removed_and_the_reason_is_said(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.press("x")
        await screen.until_shown("Remove step")
        await screen.press("y")
        await screen.until(lambda: "read" in screen.said and "Not changed" in screen.said, "the reason")
        assert screen.order[0] == "write"


async def test_a_change_by_another_reviewer_is_seen_at_once(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.by_another(SkipStep(op="skip", step_id="list"))
        await screen.until_shown("version 2")
        await screen.press("l")
        await screen.until_shown("version 2 by ann")
        await screen.until_shown("list: skipped")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_two_reviewers_edit_one_step_and_nothing_typed_is_lost(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.open_form("path  text, required")
        await screen.append(".mine")
        theirs = {"path": "theirs.txt", "content": "three"}
        await screen.by_another(SetField(op="set", step_id="write", path="args", value=theirs))
        await screen.until_shown("This step was changed: version 2 (ann:")
        await screen.press("ctrl+s")
        await screen.until_shown("Not saved, the plan has changed")
        await screen.until_shown("now theirs.txt in version 2; saving replaces it with yours")
        await screen.until_shown("a.txt.mine")
        await screen.until_shown("three")
        assert (await screen.saved_as(3))[0] == {"path": "a.txt.mine", "content": "three"}


async def test_a_change_elsewhere_does_not_disturb_a_form(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.open_form("(version 1)")
        await screen.type("z")
        await screen.by_another(RemoveStep(op="remove", step_id="list"))
        await screen.until_shown("(version 2)")
        assert (await screen.saved_as(3))[0]["path"] == "za.txt"


async def test_it_says_that_the_server_is_away_as_long_as_it_is(open_screen: Open) -> None:
    async with open_screen() as screen:
        screen.app.lost("The server is away.")
        await screen.app.refresh_view()
        await screen.until(lambda: "The server is away." not in screen.text, "the server answers again")
        screen.app.lost("The server is away.")
        screen.app.say("The plan runs.")
        await screen.app.refresh_view()
        await screen.until_shown("The plan runs.")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_plan_begins_and_its_steps_are_approved_on_the_screen(open_screen: Open, workspace: Path) -> None:
    async with open_screen() as screen:
        await screen.press("b")
        await screen.until_shown("? approve: y/n")
        await screen.press("w")
        await screen.until_shown("awaiting     ? approval: y approves, n denies")
        assert screen.app.chosen
        assert screen.app.chosen.id == "remove"
        assert (workspace / "a.txt").exists()
        screen.app.reading_seconds = 0.0  # a person reads before deciding; sooner does not count
        await screen.press("y")
        await screen.until_shown("because      │ delete_file needs approval by default")
        await screen.pilot.pause()
        await screen.press("y")
        await screen.until_status("completed")
        assert not (workspace / "a.txt").exists()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_step_is_denied_with_a_comment_after_its_diff_was_shown(open_screen: Open) -> None:
    async with open_screen(WRITE, {**REMOVE, "dependsOn": ["write"]}) as screen:

        async def look(view: PlanView, _: Around) -> Around:
            found = {item.step_id: {NOW: "'a.txt' would be deleted", CHANGE: "-one"} for item in view.pending}
            return Around(found, {"remove": "delete_file needs approval by default"})

        screen.app.look = look
        await screen.app.refresh_view()
        await screen.choose("remove")
        await screen.until_shown("delete_file, ⚠ ")
        await screen.press("b")
        await screen.until_shown("diff         -one")
        await screen.until_shown("because      delete_file needs approval by default")
        screen.app.reading_seconds = 0.0
        await screen.press("N")
        await screen.until_shown("Why is step 'remove' denied?")
        await screen.type("not today")
        await screen.press("enter")
        await screen.until_status("partial")
        decision = (await screen.view()).steps[1].decision
        assert decision
        assert (decision.by, decision.comment) == ("bob", "not today")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_always_shows_its_scope_before_it_counts(open_screen: Open) -> None:
    again = {**REMOVE, "id": "again", "args": {"path": "b.txt"}, "dependsOn": ["remove"]}
    other = {**WRITE, "id": "other", "args": {"path": "b.txt", "content": "x"}}
    async with open_screen(WRITE, other, {**REMOVE, "dependsOn": ["write", "other"]}, again) as screen:
        await screen.press("b")
        await screen.until(lambda: screen.app.view.pending, "it asks")
        await screen.press("w")
        await screen.until_shown("awaiting     ? approval")
        screen.app.reading_seconds = 0.0
        await screen.press("A")
        await screen.until_shown("Always approve step 'remove'?")
        await screen.until_shown("always       │ every call of delete_file")
        await screen.press("space", "y")
        await screen.until_status("completed")


def test_a_write_that_may_ask_is_not_said_to_need_no_approval() -> None:
    step = StepView(id="write", tool="write_file", args={"path": "a.txt", "content": "x"}, status="ready")
    assert Around().why(step) == OVERWRITES
    assert Around(asking={}).why(step) == ""
    assert Around(asking={"write": "writes over a.txt"}).why(step) == "writes over a.txt"
    block = step.model_copy(update={"tool": ""})
    assert Around(asking={"write.inner": "asks"}).why(block) == "1 step inside will ask: write.inner"


async def test_a_begin_that_is_pressed_again_is_not_given_up_and_follows_the_plan(open_screen: Open) -> None:
    async with open_screen() as screen:
        screen.app.leaves_on_begin = True
        await screen.press("b", "b", "b")
        await screen.until(lambda: screen.app.return_value == "begun", "the screen is left")
        log = (await screen.view()).log
        assert [entry.kind for entry in log if entry.kind in ("begun", "refused")] == ["begun"]


async def test_a_plan_that_another_has_begun_is_followed(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.press("b")
        await screen.until(lambda: screen.app.view.status == "running", "it has begun")
        screen.app.leaves_on_begin = True
        await screen.press("b")
        await screen.until(lambda: screen.app.return_value == "begun", "the screen is left")


async def test_a_key_that_comes_before_the_question_can_be_read_approves_nothing(open_screen: Open) -> None:
    async with open_screen(WRITE, {**REMOVE, "dependsOn": ["write"]}) as screen:
        await screen.press("b")
        await screen.until(lambda: screen.app.view.pending, "it asks")
        screen.app.choose("write")
        screen.app.reading_seconds = 3600.0
        await screen.press("down", "y")
        await screen.until(lambda: "read it, then press the key again" in screen.said, "the reason")
        screen.app.reading_seconds = 0.0
        await screen.press("n")
        await screen.until_status("partial")
        assert (await screen.view()).steps[1].reason == "User denied approval"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_steps_that_have_not_begun_stay_editable_while_the_plan_runs(open_screen: Open) -> None:
    async with open_screen(*STEPS, LONG, review=False) as screen:
        await screen.until_shown("? approve: y/n")
        await screen.choose("write")
        await screen.press("enter")
        await screen.until(lambda: "only steps that have not started can be edited" in screen.said, "the reason")
        await screen.choose("nap")
        await screen.open_form("seconds  number")
        await screen.press("end", "backspace", "backspace", "ctrl+s")
        await screen.until_version(2)
        assert (await screen.view()).steps[5].args == {"seconds": 36}
        await screen.press("p")
        await screen.until_shown("paused")
        await screen.press("c")
        await screen.until_shown("Cancel the plan?")
        await screen.press("y")
        await screen.until_status("cancelled")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_texts_of_a_plan_cannot_draw_on_the_screen(open_screen: Open) -> None:
    evil = "\x1b[2Jgone\u202e \x07[red]not red[/red]"
    step = {**WRITE, "description": evil, "args": {"path": "a.txt", "content": evil}}
    async with open_screen(step, LIST, title=evil) as screen:
        await screen.until_shown("\\u001b[2Jgone\\u202e")
        assert "[red]not red[/red]" in screen.text
        assert not set(screen.text) & set("\x1b\x07\u202e")
        await screen.open_form("content  JSON, required")
        await screen.type("b")
        assert not set(screen.text) & set("\x1b\x07\u202e")
        await screen.press("ctrl+s")
        await screen.until_version(2)
        args = (await screen.view()).steps[0].args
        assert args == {"path": "ba.txt", "content": evil}


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (50, 16)])
async def test_no_row_is_wider_than_the_terminal(open_screen: Open, size: tuple[int, int]) -> None:
    wide = {**WRITE, "description": "很长的描述" * 40}
    async with open_screen(wide, *STEPS[1:], size=size) as screen:
        await screen.until_shown("☐ 5 remove")
        assert "⚠ approval" in screen.text
        assert len(screen.text.splitlines()) <= size[1]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_question_is_answered_with_y_until_the_answer_fits(open_screen: Open) -> None:
    ask = {"id": "ask", "tool": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}}
    async with open_screen(ask) as screen:
        await screen.press("b")
        await screen.until_shown("? question: y answers")
        await screen.until_shown("Which colour?")
        screen.app.reading_seconds = 0
        await screen.press("y")
        await screen.until_shown("Answer of step 'ask': one of red, blue")
        await screen.type("green")
        await screen.press("enter")
        await screen.until_shown("is not one of the choices")
        await screen.press("end", *["backspace"] * 5)
        await screen.type("red")
        await screen.press("enter")
        await screen.until_status("completed")
        view = await screen.view()
        assert (view.steps[0].answer.by if view.steps[0].answer else "", view.steps[0].result) != ("", None)

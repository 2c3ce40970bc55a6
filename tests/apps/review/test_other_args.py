"""An approval with other arguments on the review screen: typed in a form, shown whole with its diff, then final."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from plansurvive.client import runs
from plansurvive.client.decide.shown import with_change
from plansurvive.client.runs import Choice
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.views.models.card import Card
from tests.apps.review.conftest import Open, Screen

SAVE = {"id": "save", "tool": "write_file", "args": {"path": "a.txt", "content": "one\ntwo"}, "description": "Save it"}
NAP = {"id": "nap", "tool": "sleep", "args": {"seconds": 1}, "requiresApproval": True, "description": "Wait"}


async def asked(screen: Screen, step: str) -> None:
    """Begin the plan, and go to the step that asks."""
    await screen.press("b")
    await screen.until(lambda: screen.app.view.pending, "it asks")
    await screen.press("w")
    await screen.until_shown("awaiting     ? approval")
    assert screen.app.chosen
    assert screen.app.chosen.id == step


async def compared(item: Card) -> Card:
    """With the diff against the file as it is here, as the command's screen has it."""
    return await asyncio.to_thread(with_change, item)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_call_is_changed_read_with_its_diff_and_approved_as_shown(open_screen: Open, workspace: Path) -> None:
    (workspace / "b.txt").write_text("old\n")
    step = {**SAVE, "requiresApproval": True}
    async with open_screen(step, size=(80, 40)) as screen:
        screen.app.compare = compared
        await asked(screen, "save")
        await screen.press("e")
        await screen.until_shown("Approve step 'save' with other arguments")
        await screen.press("home", "delete")
        await screen.type("b")
        await screen.press("ctrl+s")
        await screen.until_shown("Approve step 'save' with these arguments? Read all of it first.")
        await screen.until_shown("your edit    │ path:")
        await screen.until_shown("│ -a.txt")
        await screen.until_shown("│ +b.txt")
        await screen.until_shown("│ -old")
        await screen.until_shown("│ +two")
        assert screen.app.view.pending, "nothing is decided by looking"
        await screen.press("y")
        await screen.until_status("completed")
        await screen.until(lambda: "approved with other arguments" in screen.said, "what was done")
        decision = (await screen.view()).steps[0].decision
    assert decision
    assert decision.by == "bob"
    assert (workspace / "b.txt").read_text() == "one\ntwo"
    assert not (workspace / "a.txt").exists()


@pytest.mark.slow
async def test_what_cannot_be_run_is_said_and_stays_typed_until_it_can(open_screen: Open) -> None:
    async with open_screen(NAP) as screen:
        await asked(screen, "nap")
        await screen.press("e")
        await screen.until_shown("seconds  number, required")
        await screen.press("ctrl+s")
        await screen.until_shown("These are the arguments of the call")
        await screen.append("x")
        await screen.press("ctrl+s")
        await screen.until_shown("✗ '1x' is not a number")
        await screen.press("end", "backspace", "home")
        await screen.type("-")
        await screen.press("ctrl+s")
        await screen.until_shown("│ +-1")
        await screen.pilot.pause()
        await screen.press("y")
        await screen.until_shown("Not approved: args.seconds")
        await screen.until_shown("-1 is less than")
        await screen.press("home", "delete", "delete")
        await screen.type("0")
        await screen.press("ctrl+s")
        await screen.until_shown("│ +0")
        await screen.press("escape")
        await screen.until_shown("seconds  number, required")
        await screen.press("ctrl+s")
        await screen.until_shown("│ +0")
        await screen.pilot.pause()
        await screen.press("y")
        await screen.until_status("completed")
        assert (await screen.view()).steps[0].args == {"seconds": 0}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_form_of_arguments_is_left_without_a_decision_only_when_asked_twice(open_screen: Open) -> None:
    async with open_screen(NAP) as screen:
        await screen.press("e")
        await screen.until(lambda: "enter edits one that has not started" in screen.said, "there is nothing to decide")
        await asked(screen, "nap")
        await screen.press("e")
        await screen.until_shown("seconds  number, required")
        await screen.append("5")
        await screen.press("escape")
        await screen.until_shown("Nothing is approved. Press escape again")
        await screen.press("escape")
        await screen.until(lambda: screen.is_bare and screen.said == "Nothing was decided.", "the form is closed")
        assert (await screen.view()).pending


@pytest.mark.slow
@pytest.mark.in_turn
async def test_an_edit_of_a_call_that_is_not_asked_about_any_more_approves_nothing(open_screen: Open) -> None:
    async with open_screen(NAP) as screen:
        await asked(screen, "nap")
        await screen.press("e")
        await screen.until_shown("seconds  number, required")
        await screen.append("5")
        await screen.press("ctrl+s")
        await screen.until_shown("│ +15")
        await screen.by_another(SetField(op="set", step_id="nap", path="args.seconds", value=2))
        await screen.until(lambda: screen.app.view.version == 2, "the screen knows")
        await screen.press("y")
        await screen.until(lambda: "has changed in the meantime: read it again" in screen.said, "the reason")
        await screen.press("e")
        await screen.until_shown("15")
        await screen.press("ctrl+s")
        await screen.until_shown("│ -2")
        await runs.deny(screen.client, screen.app.plan, Choice(step_id="nap", by="ann"))
        await screen.until(lambda: not screen.app.view.pending, "somebody else was first")
        await screen.press("y")
        await screen.until(lambda: "has changed in the meantime" in screen.said and screen.is_bare, "the reason")
        view = await screen.view()
    assert view.steps[0].decision
    assert not view.steps[0].decision.approved

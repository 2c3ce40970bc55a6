"""`plan answer`, `plan event` and `plan pending` of questions, and the form on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from tests.client.cli.command import Ended, plan, written
from tests.client.cli.follow.test_screen import terminal
from tests.kit.waiting import until

SIZE = {
    "type": "object",
    "properties": {"width": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["width"],
}
ASK: dict[str, Any] = {
    "id": "size",
    "tool": "ask",
    "args": {"question": "How wide is it?", "schema": SIZE, "to": "ann"},
}
COLOUR: dict[str, Any] = {
    "id": "colour", "tool": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"], "default": "blue"}
}  # fmt: skip
WAIT: dict[str, Any] = {"id": "paid", "tool": "wait_for", "args": {"event": "order.paid", "match": "total > `5`"}}
NOTE: dict[str, Any] = {
    "id": "note", "tool": "write_file",
    "args": {"path": "note.txt", "content": "{{size.width}} {{colour}} {{paid.total}}"},
}  # fmt: skip

Environ = dict[str, str]


def refused(ended: Ended) -> tuple[int, str]:
    """The exit code and the code of the error."""
    return ended.code, ended.err.split(":")[0].splitlines()[-1] if ended.err else ""


@pytest.mark.slow
async def test_questions_are_listed_and_answered_and_events_are_sent_by_command(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    file = written(tmp_path / "plan.json", {"id": "sizes", "steps": [ASK, COLOUR, WAIT, NOTE]})
    assert (await plan(environ, "check", file)).code == 0
    assert (await plan(environ, "start", file, "--yes")).code == 0

    async def asked() -> bool:
        return len((await plan(environ, "pending", "sizes", "--json")).json) == 2

    await until(asked, "both questions are asked, in spite of --yes")
    shown = (await plan(environ, "pending")).out
    for part in (
        "sizes  size: awaiting an answer of ann",
        "question     │ How wide is it?",
        "  plan answer sizes size VALUE",
    ):
        assert part in shown
    draft = written(
        tmp_path / "draft.json", {"id": "drafted", "steps": [NOTE | {"args": {"path": "a", "content": "b"}}]}
    )
    assert (await plan(environ, "start", draft, "--review")).code == 0
    in_review = "drafted is in review: `plan review drafted` shows it, `plan begin drafted` starts it."

    async def listed() -> bool:
        return in_review in (await plan(environ, "pending")).err

    await until(listed, "what awaits a review is listed as well")
    assert in_review in (await plan(environ, "pending", "drafted")).err
    assert in_review not in (await plan(environ, "pending", "sizes")).err
    assert (await plan(environ, "cancel", "drafted")).code == 0
    of_ann = await plan(environ, "pending", "--to", "Ann", "--json")
    assert [item["stepId"] for item in of_ann.json] == ["size"]
    assert "No step asks bob a question." in (await plan(environ, "pending", "sizes", "--to", "bob")).err
    summary = (await plan(environ, "show", "sizes")).out
    assert "2 awaiting answer, 1 awaiting event" in summary
    assert "IS_A_QUESTION" in (await plan(environ, "approve", "sizes", "size")).err
    assert "NOT_A_QUESTION" in (await plan(environ, "answer", "sizes", "note", "5")).err
    wrong = await plan(environ, "answer", "sizes", "size", '{"width": "wide"}', "--json")
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "INVALID_ANSWER")
    assert 'width: should be a whole number; it is "wide"' in wrong.json["error"]["message"]
    given = await plan(environ, "answer", "sizes", "size", '{"width": 7}', "--by", "ann")
    assert given.out == "sizes: step 'size' answered by ann: {\"width\": 7}\n"
    # Before the plan ends: the worker of this test keeps its record in another state directory.
    assert "Answered: by ann" in (await plan(environ, "show", "sizes")).out
    assert "ALREADY_DECIDED" in (await plan(environ, "answer", "sizes", "size", '{"width": 8}')).err
    assert (await plan(environ, "answer", "sizes", "colour", "red")).code == 0
    missing = await plan(environ, "answer", "sizes", "colour")
    assert (missing.code, "the answer is missing" in missing.err) == (2, True)
    kept = await plan(environ, "event", "sizes", "order.paid", "--data", '{"total": 1}')
    assert "kept for steps that will wait for it" in kept.out
    misspelt = await plan(environ, "event", "sizes", "order.payed")
    assert misspelt.err == "No step waits for this event now; 'paid' waits for order.paid.\n"
    sent = await plan(environ, "event", "sizes", "order.paid", "--data", '{"total": 9}', "--json")
    assert sent.json["message"] == "event 'order.paid' received by paid"
    assert (await plan(environ, "watch", "sizes")).code == 0
    assert (workspace / "note.txt").read_text() == "7 red 9"


async def test_an_event_for_a_step_of_a_child_plan_is_sent_to_the_plan_which_shows_that_it_is_awaited(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    paid = {"id": "paid", "tool": "wait_for", "args": {"event": "order.paid"}}
    steps = [{"id": "kid", "tool": "plan", "args": {"steps": [paid]}}]
    await plan(environ, "start", written(tmp_path / "plan.json", {"steps": steps}), "--id", "above")

    async def waits() -> bool:
        return "waits below for order.paid" in (await plan(environ, "show", "above")).out

    await until(waits, "the plan knows that a step of its child plan waits")
    why = await plan(environ, "why", "above", "kid")
    assert "below it the event 'order.paid' is awaited: plan event above order.paid" in why.out
    misspelt = await plan(environ, "event", "above", "order.payed")
    assert misspelt.err == "No step waits for this event now; 'kid' waits for order.paid.\n"
    sent = await plan(environ, "event", "above", "order.paid")
    assert sent.out == "above: event 'order.paid' passed on to the child plan of kid\n"
    assert (await plan(environ, "watch", "above")).code == 0


@pytest.mark.slow
@pytest.mark.in_turn
async def test_the_board_asks_with_a_form_until_the_answer_fits(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    file = written(tmp_path / "plan.json", {"title": "Sizes", "steps": [ASK, COLOUR]})
    async with terminal(environ, "run", file) as screen:
        await until(lambda: "Answer size?" in screen.text, "the question is asked")
        assert "2 awaiting answer" in screen.text
        await screen.press_until("a", "width (whole number, required): ")
        assert not screen.is_quiet()
        screen.press("wide\r")
        await until(lambda: "is not a whole number" in screen.text, "the form says what is wrong")
        screen.press("7\r")
        await until(lambda: "why (text): " in screen.text, "the next field")
        screen.press("\r")
        await until(lambda: "Answer colour?" in screen.text, "the next question")
        await screen.press_until("a", "answer [blue]: ")
        screen.press("1\r")
        await until(lambda: "✓ completed   2 of 2 steps" in screen.text, "the end")
        assert await screen.process.wait() == 0
        assert not screen.is_quiet()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_answer_without_a_value_shows_the_form(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    file = written(tmp_path / "plan.json", {"id": "form", "steps": [COLOUR]})
    await plan(environ, "start", file)
    async with terminal(environ, "answer", "form", "colour") as screen:
        await until(lambda: "answer [blue]: " in screen.text, "the form")
        screen.press("green\r")
        await until(lambda: '"green" is not one of the choices' in screen.text, "it says what is wrong")
        screen.press("\r")
        await until(lambda: "step 'colour' answered" in screen.text, "the answer counts")
        assert await screen.process.wait() == 0
    assert (await plan(environ, "watch", "form")).code == 0

"""The review screen on a real terminal, opened by `plan run --review` and `plan review`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.worker import Worker

from examples.scripted_llm.server import ScriptedLlm
from tests.client.cli.command import plan
from tests.client.cli.follow.test_screen import Terminal, plan_file, terminal
from tests.features.planning.test_make import llm as llm
from tests.kit.waiting import until

QUIET = 6
"""So often in a row nothing new may be seen on a screen that is at rest."""


async def in_review(environ: dict[str, str], directory: Path) -> str:
    """A plan that waits in review."""
    ended = await plan(environ, "start", plan_file(directory), "--review", "--json")
    name = str(ended.json["planId"])

    async def waits() -> bool:
        return bool((await plan(environ, "summary", name, "--json")).json["status"] == "review")

    await until(waits, "review")
    return name


@asynccontextmanager
async def on_the_review_screen(environ: dict[str, str], *arguments: str) -> AsyncIterator[Terminal]:
    """`plan` in a terminal, when it shows the review screen."""
    async with terminal(environ, *arguments) as screen:
        await until(lambda: "q leave (the plan stays in review)" in screen.text, "the review screen")
        yield screen


async def at_rest(screen: Terminal) -> int:
    """How many bytes were sent, when no more have been for a while."""
    drawn = [screen.drawn]
    while len(drawn) < QUIET or len(set(drawn[-QUIET:])) > 1:
        await asyncio.sleep(0.25)
        drawn.append(screen.drawn)
    return drawn[-1]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_run_with_review_opens_the_screen_and_follows_the_plan_when_it_begins(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    async with on_the_review_screen(environ, "run", plan_file(tmp_path), "--review") as screen:
        screen.press("b")
        await until(lambda: "Approve remove?" in screen.text, "the board asks")
        await screen.press_until("y", "✓ completed   2 of 2 steps")
        assert await screen.process.wait() == 0
        assert not screen.is_quiet()
    assert not (workspace / "a.txt").exists()


@pytest.mark.slow
async def test_a_sentence_becomes_a_plan_on_the_screen_which_is_revised_begun_and_followed(
    environ: dict[str, str], llm: ScriptedLlm, workspace: Path
) -> None:
    async with on_the_review_screen(environ, "make", "write two notes") as screen:
        screen.press("r")
        await until(lambda: "What should the LLM change?" in screen.text, "the question")
        screen.press("say it better\r")
        await until(lambda: "~ two" in screen.text and "args.content: " in screen.text, "the difference")
        screen.press("\x1b")
        await until(lambda: "The plan is now at version 2." in screen.text, "back on the plan")
        await screen.press_until("b", "✓ completed   2 of 2 steps")
        assert await screen.process.wait() == 0
        assert not screen.is_quiet()
    assert (workspace / "two.txt").read_text() == "better"


@pytest.mark.slow
async def test_a_review_that_is_left_keeps_the_plan_waiting_and_says_how_to_come_back(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    async with on_the_review_screen(environ, "run", plan_file(tmp_path), "--review") as screen:
        screen.press("q")
        await until(lambda: "The plan is in review." in screen.text, "how to come back")
        assert await screen.process.wait() == 130
    assert not (workspace / "a.txt").exists()


@pytest.mark.slow
async def test_a_step_is_changed_in_the_editor_of_the_user(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    name = await in_review(environ, tmp_path)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i s/hello/goodbye/ "$1"\n')
    editor.chmod(0o755)
    async with on_the_review_screen(environ | {"VISUAL": str(editor)}, "review", name) as screen:
        screen.press("E")
        await until(lambda: "Step 'write' was changed." in screen.text, "the change")
        screen.press("q")
        assert await screen.process.wait() == 0
    shown = (await plan(environ, "show", name, "--json")).json
    assert shown["steps"][0]["args"]["content"] == "goodbye"
    await plan(environ, "cancel", name)


async def sent_for(screen: Terminal, key: str, shown: str) -> int:
    """How many bytes a key makes a screen send that is at rest, when a text is to be seen then; it is at rest again."""
    before, seen = screen.drawn, len(screen.text)
    screen.press(key)
    await until(lambda: shown in screen.text[seen:], f"{shown!r} after {key!r}")
    return await at_rest(screen) - before


@pytest.mark.slow
async def test_a_slow_terminal_is_sent_what_a_key_changed_and_not_the_whole_screen(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    name = await in_review(environ, tmp_path)
    async with terminal(environ, "review", name) as screen:
        await until(lambda: "☐ 2 remove" in screen.text and "status" in screen.text, "the review screen")
        whole = await at_rest(screen)
        assert whole < 20 * 80 * 24
        assert await sent_for(screen, "\x1b[B", "delete_file") < whole / 3
        assert await sent_for(screen, "s", "is skipped") < whole
        await sent_for(screen, "\r", "ctrl+s save")
        assert await sent_for(screen, "Q", "Q") < whole / 20
        await sent_for(screen, "\x1b", "unsaved changes")
        await sent_for(screen, "\x1b", "1 write")
        screen.press("q")
        assert await screen.process.wait() == 0
    await plan(environ, "cancel", name)


@pytest.mark.slow
async def test_other_arguments_of_a_call_are_approved_on_the_screen_after_their_diff(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "ba.txt").write_text("an older note\n")
    name = await in_review(environ, tmp_path)
    async with on_the_review_screen(environ, "review", name) as screen:
        screen.press("b")
        await until(lambda: "? approve: y/n" in screen.text, "it asks")
        screen.press("w")
        await until(lambda: "e edits" in screen.text, "what may be done")
        screen.press("e")
        await until(lambda: "with other arguments" in screen.text, "the form")
        await at_rest(screen)
        await sent_for(screen, "b", "ba.txt")
        screen.press("\x13")
        await until(lambda: "with these arguments?" in screen.text and "+ba.txt" in screen.text, "the changed call")
        await until(lambda: "'ba.txt' would be deleted" in screen.text and "-an older note" in screen.text, "its diff")
        await at_rest(screen)
        screen.press("y")
        await until(lambda: "was approved with other arguments" in screen.text, "what was done")
        screen.press("q")
        assert await screen.process.wait() == 0
    assert (workspace / "a.txt").exists()
    assert not (workspace / "ba.txt").exists()

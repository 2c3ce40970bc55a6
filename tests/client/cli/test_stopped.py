"""A command that a signal or a closed pipe ends leaves in order: its exit code, what it says, and nothing half-done."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from temporalio.worker import Worker

from tests.client.cli.command import line_with, plan, running, told_to_stop
from tests.client.cli.test_run import REMOVE, WRITE, file_of

pytestmark = pytest.mark.slow

DISORDER = ("Traceback", "was destroyed", "never retrieved", "never awaited", "Exception ignored", "Fatal")
FOLLOWING = {
    "run": ("plan approve", ["run", "{file}"]),
    "run-json": ("", ["run", "{file}", "--json"]),
    "run-review": ("plan ", ["run", "{file}", "--review"]),
    "run-review-json": ("", ["run", "{file}", "--review", "--json"]),
    "watch": ("plan approve", ["watch", "{plan}"]),
    "watch-json": ("awaiting", ["watch", "{plan}", "--json"]),
    "logs": ("", ["logs", "{plan}", "-f"]),
    "web": ("http", ["web", "--port", "0"]),
}
"""Commands that run until they are stopped, with a text that they print before that."""
IMPORTED = "Command line ready"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
@pytest.mark.parametrize("command", FOLLOWING)
async def test_a_command_that_follows_something_ends_in_order(
    environ: dict[str, str], worker: Worker, tmp_path: Path, command: str, number: signal.Signals
) -> None:
    text, arguments = FOLLOWING[command]
    file, name = file_of(tmp_path, WRITE, REMOVE), f"{command}-{number.name}"
    if "{plan}" in arguments:
        assert (await plan(environ, "start", file, "--id", name)).code == 0
    given = [each.format(file=file, plan=name) for each in arguments]
    async with running(environ, *given) as process:
        if text:
            await line_with(process, text)
        else:
            await asyncio.sleep(2)
        said = await told_to_stop(process, number)
    assert process.returncode == 130, said
    assert not [each for each in DISORDER if each in said], said

"""Every command that takes the id of a plan refuses an unknown one in the same words.

On a server without plans: on that of the other tests each command would look for a similar name among a thousand.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client.cli.commands import COMMANDS, imported
from tests.client.cli.command import plan
from tests.kit.servers import development_server
from tests.kit.waiting import connected

Environ = dict[str, str]
VALUES = {"plan": "nope", "step": "s", "value": "{}", "name": "done", "feedback": "more"}
OPTIONS = {"edit": ["--set", "s.args.a=1"], "move": ["--after", "s"], "rerun": ["--from", "s"]}
USUAL = "PLAN_NOT_FOUND: there is no plan 'nope' on this server; `plan list` shows the plans"
OTHERWISE: dict[str, str | tuple[str, ...]] = {
    "review": "NO_TERMINAL: ",
    "diff s": "WORKTREE_MISSING: step 's' of plan nope has no worktree on this machine",
    "graph": "PLAN_NOT_FOUND: ",
    "audit": "PLAN_NOT_FOUND: neither the server nor ",
    "answer": ("PLAN_NOT_FOUND: ", "BAD_USAGE: Invalid value for VALUE: the answer is missing"),
    "worktrees": "",
}
"""Commands that ask no server, or look elsewhere first, with what they begin with."""


@pytest_asyncio.fixture
async def temporal_client(temporal_binary: Path, tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server of its own."""
    async with development_server(temporal_binary, tmp_path) as server:
        yield await connected(server.address)


@pytest.fixture
def address(temporal_client: Client) -> str:
    return temporal_client.service_client.config.target_host


def calls(file: Path) -> Iterator[list[str]]:
    """Each command whose first argument is a plan: with the arguments that it must have, and with one more."""
    for name in COMMANDS:
        arguments = [each for each in _parameters(imported(name)) if each.param_type_name == "argument"]
        if not arguments or arguments[0].name != "plan":
            continue
        values = [str(file) if each.name == "file" else VALUES[each.name] for each in arguments]
        least = max(1, sum(each.required for each in arguments))
        for count in {least, len(values)}:
            yield [name, *values[:count], *OPTIONS.get(name, [])]


def _parameters(command: Any) -> list[Any]:
    return [] if hasattr(command, "commands") else list(command.params)


async def test_every_command_says_that_there_is_no_such_plan(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    file = tmp_path / "step.json"
    file.write_text(json.dumps({"id": "s", "tool": "list_directory", "args": {"path": "."}}))
    wrong, called = {}, 0
    for words in calls(file):
        answered = await plan(environ, *words)
        what = " ".join(each for each in (words[0], *words[2:]) if each in (words[0], "s"))
        expected = OTHERWISE.get(what, OTHERWISE.get(words[0], USUAL))
        called += 1
        if not answered.err.startswith(expected) or (expected and not answered.code):
            wrong[" ".join(words)] = (answered.code, answered.err)
    assert not wrong
    assert called > 35

"""The embedded server's data and the versions of the server: upwards they are opened, downwards never."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from plansurvive.runtime import server
from plansurvive.runtime.errors import NotConnected
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.temporal_binary import PINNED
from tests.client.cli.command import plan_process as plan
from tests.client.cli.command import written
from tests.kit.servers import OLDEST, oldest_program

ASK = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}, "requiresApproval": True}


def on_path(program: Path) -> str:
    """A PATH on which this program is the first of its name."""
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest_asyncio.fixture
async def own(environ: dict[str, str], temporal_binary: Path) -> AsyncIterator[dict[str, str]]:
    """The environment of commands with an embedded server, which ends with the test."""
    variables = {name: text for name, text in environ.items() if not name.startswith("TEMPORAL_")}
    variables |= {"PLANS_SERVER": "embedded", "TEMPORAL_CONFIG_FILE": os.devnull}
    yield variables
    await plan(variables, "down")


@pytest.mark.slow
async def test_a_plan_that_the_oldest_server_began_awaits_its_approval_on_the_newest_and_ends_there(
    own: dict[str, str], tmp_path: Path, workspace: Path, state_dir: Path, temporal_binary: Path
) -> None:
    older = own | {"PATH": on_path(await oldest_program())}
    file = written(tmp_path / "plan.json", {"id": "kept", "steps": [ASK]})
    begun = await plan(older, "start", file, "--id", "kept")
    assert (begun.code, (state_dir / "temporal.version").read_text()) == (0, OLDEST.server), begun.err
    down = await plan(older, "down")
    left = "Not ended: kept. They continue when the next command starts the server again."
    assert (down.code, left in down.out) == (0, True), down.out

    newer = own | {"PATH": on_path(temporal_binary)}
    shown = (await plan(newer, "show", "kept", "--json")).json
    assert (state_dir / "temporal.version").read_text() == PINNED.server
    assert [step["awaiting"] for step in shown["steps"]] == ["approval"]
    assert (await plan(newer, "approve", "kept", "write")).code == 0
    assert (await plan(newer, "watch", "kept")).code == 0
    assert (workspace / "a.txt").read_text() == "hello"


async def test_data_of_a_newer_server_are_refused_by_an_older_one(
    state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin/temporal"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", on_path(program))
    (state_dir / "temporal.version").write_text("1.100.0")  # no order of letters
    settings = Settings.read({"HOME": str(tmp_path), "PLANS_STATE_DIR": str(state_dir)})
    with pytest.raises(
        NotConnected, match=rf"last opened by Temporal server 1.100.0. {program} has .* 1.29.1"
    ) as caught:
        await server.ensure(settings)
    assert caught.value.code == "SERVER_OLDER"
    assert not (state_dir / "server.log").exists()
    assert (state_dir / "temporal.version").read_text() == "1.100.0"

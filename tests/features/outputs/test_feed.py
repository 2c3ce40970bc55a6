"""The feed behind `plan logs`: what it survives, and that it reads any part of what was recorded."""

from __future__ import annotations

import asyncio
import base64
import random
from pathlib import Path

import pytest

from plansurvive.activities.outputs.stored_output import Number, Position, output
from plansurvive.activities.outputs.transcript import NUMBERS, Transcript
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.features.outputs.feed import Event, LeftOut, Wrote, feed
from plansurvive.plans.activity_io import STDERR, STDOUT, Logs
from plansurvive.plans.run import Options
from plansurvive.plans.views.progress.logs import LoggedAttempt
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.runtime.value_store import ValueStore
from plansurvive.worker import build
from tests.client.test_history_feed import Mortal, mortal  # noqa: F401
from tests.kit.waiting import connected, until
from tests.nightly import only_nightly


@pytest.mark.slow
async def test_output_is_followed_across_a_restart_of_the_server(
    mortal: Mortal,  # noqa: F811
    settings: Settings,
    workspace: Path,
    tmp_path: Path,
    queue: str,
) -> None:
    driver = LocalDirectory(tmp_path / "values")
    client = await connected(mortal.address, data_converter=converter(driver))
    said, seen = list[str](), list[Event | LeftOut]()

    async def followed(plan: str) -> None:
        async for event in feed(client, ValueStore(driver), plan, follow=True, say=said.append):
            seen.append(event)

    def text() -> bytes:
        return b"".join(event.data for event in seen if isinstance(event, Wrote))

    async with build(client, settings, load_tools(()), indexed=False):
        command = "echo first; until [ -e go ]; do sleep 0.05; done; echo last"
        step = {"id": "a", "tool": "run_command", "args": {"command": command}, "requiresApproval": False}
        options = Options(workspace=str(workspace))
        plan = (await runs.start(client, {"steps": [step]}, options=options, queue=queue)).plan_id
        follower = asyncio.create_task(followed(plan))
        await until(lambda: text() == b"first\n", "the output is shown while the command runs")
        await mortal.kill()
        await until(lambda: said, "the follower is told")
        await mortal.start()
        (workspace / "go").touch()
        await follower
    assert text().endswith(b"last\n")
    assert len(said) == 1


@pytest.mark.parametrize("parts", [1, 65, only_nightly(63), only_nightly(200)])
async def test_what_is_stored_is_read_in_its_order_from_any_position(tmp_path: Path, parts: int) -> None:
    chance, store = random.Random(parts), ValueStore(LocalDirectory(tmp_path))
    transcript, written = Transcript(store), list[tuple[Number, bytes]]()
    for _ in range(parts):
        turns = [(chance.choice(NUMBERS), chance.randbytes(chance.choice([1, 30, 900]))) for _ in range(4)]
        data = {number: b"".join(piece for each, piece in turns if each == number) for number in NUMBERS}
        await transcript.add(data, [(number, len(piece)) for number, piece in turns])
        written += turns
    whole = {number: b"".join(piece for each, piece in written if each == number) for number in NUMBERS}
    logs = Logs(
        index=transcript.claim, stdout=len(whole[STDOUT]) + 3, stderr=len(whole[STDERR]),
        end=[(STDOUT, base64.b64encode(b"end").decode())],
    )  # fmt: skip
    read = [
        (piece.stream, piece.data) async for piece in output(LoggedAttempt(logs=logs), store, dict.fromkeys(NUMBERS, 0))
    ]
    assert read == [*written, (STDOUT, b"end")]
    for _ in range(5):
        start: Position = {number: chance.randrange(len(whole[number]) + 1) for number in NUMBERS}
        position, found = dict(start), dict.fromkeys(NUMBERS, b"")
        async for piece in output(LoggedAttempt(logs=logs), store, position):
            found[piece.stream] += piece.data
        assert found[STDOUT] == whole[STDOUT][start[STDOUT] :] + b"end"
        assert found[STDERR] == whole[STDERR][start[STDERR] :]
        assert position == {STDOUT: logs.stdout, STDERR: logs.stderr}

"""Plans on a real server with encrypted payloads: what the server holds, missing keys, rotation, pruning."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowFailureError
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.rpc import ask
from plansurvive.features.keys.codec import ENCRYPTED, KEY_ID
from plansurvive.features.keys.sealing import plain_texts, ring_of
from plansurvive.features.keys.settings import KeySettings
from plansurvive.features.upkeep.prune import PruneRefused, prune
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.features.keys.rings import LONG_AGO, key, ring_file
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, Started, count, statuses, step, work
from tests.kit.servers import development_server
from tests.kit.waiting import until

FIRST, SECOND = key(), key(LONG_AGO + timedelta(days=1))
CANARY = "canary-" + "7f3a" * 8
BIG = "b" * 100_000


@pytest.fixture
def settings(environ: dict[str, str], tmp_path: Path) -> Settings:
    """Settings with a key ring of the test's own."""
    return Settings.read(environ | {"PLANS_KEYS": str(ring_file(tmp_path / "keys", FIRST))})


@pytest_asyncio.fixture
async def client(settings: Settings) -> Client:
    return await connect(settings)


def working(client: Client, settings: Settings) -> Worker:
    return build(client, settings, load_tools([LEDGER_TOOLS]), indexed=True)


@pytest_asyncio.fixture
async def plans(client: Client, settings: Settings, workspace: Path) -> AsyncIterator[Plans]:
    async with working(client, settings):
        yield Plans(client, settings.task_queue, workspace)


async def raw(started: Started) -> bytes:
    """All that the server has of a plan, as it has it."""
    description = (await started.handle.describe()).raw_description.SerializeToString()
    return description + b"".join(event.SerializeToString() for event in await started.events())


STEPS = [
    work("say", description=CANARY, args={"value": CANARY}),
    work("fail", args={"value": CANARY, "name": CANARY, "fails": 1}, retry={"attempts": 1}),
    work("ask", "say", requiresApproval=True, args={"value": "$say"}),
]


async def test_the_server_holds_no_text_of_a_plan(plans: Plans, client: Client, settings: Settings) -> None:
    started = await plans.start(STEPS, title="quite public")
    await started.until_asked("ask")
    await started.approve("ask", comment=CANARY)
    view = await started.ended()
    assert statuses(view) == {"say": "completed", "fail": "failed", "ask": "completed"}
    held = await raw(started)
    assert CANARY.encode() not in held
    inside = b"".join(plain for event in await started.events() for plain in plain_texts(event, ring_of(settings)))
    assert CANARY.encode() in inside
    assert held.count(ENCRYPTED) > 20


async def test_without_keys_the_server_holds_it_which_is_the_control(environ: dict[str, str], workspace: Path) -> None:
    settings = Settings.read(environ)
    client = await connect(settings)
    async with working(client, settings):
        started = await Plans(client, settings.task_queue, workspace).start(STEPS[:1])
        await started.ended()
    assert (await raw(started)).count(CANARY.encode()) >= 4


async def test_why_a_query_failed_is_decrypted(plans: Plans) -> None:
    started = await plans.start_with({"plan": {"steps": []}})
    with pytest.raises(WorkflowFailureError):
        await started.handle.result()
    with pytest.raises(PlanError) as caught:
        await ask(started.client, started.id, "plan")
    assert caught.value.code == "QUERY_FAILED"
    assert "the plan is empty" in caught.value.message


async def test_a_plan_begun_without_keys_ends_with_them(
    environ: dict[str, str], settings: Settings, client: Client, workspace: Path
) -> None:
    plainly = Settings.read(environ)
    before = await connect(plainly)
    async with working(before, plainly):
        started = await Plans(before, plainly.task_queue, workspace).start(
            [work("a", requiresApproval=True), work("b", "a")]
        )
        await started.until_asked("a")
    async with working(client, settings):
        again = Started(client, started.id)
        await again.approve("a")
        assert statuses(await again.ended()) == {"a": "completed", "b": "completed"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_worker_that_lacks_the_key_keeps_the_plan_waiting_and_says_which_one(
    environ: dict[str, str], settings: Settings, client: Client, workspace: Path, tmp_path: Path
) -> None:
    other = key(LONG_AGO - timedelta(days=1))
    ring = ring_file(tmp_path / "worker-keys", other)
    lacking = Settings.read(environ | {"PLANS_KEYS": str(ring)})
    started = await Plans(client, settings.task_queue, workspace).start([work("a")])
    async with working(await connect(lacking), lacking):

        async def said() -> bool:
            return any(FIRST.id in str(event) for event in await started.events())

        await until(said, "the failed workflow task names the key")
        assert (await started.handle.describe()).status is not None
        ring_file(ring, other, FIRST)
        assert statuses(await started.ended()) == {"a": "completed"}


async def test_a_client_without_the_key_is_told_which_one(plans: Plans, environ: dict[str, str]) -> None:
    started = await plans.start([work("a")])
    await started.ended()
    stranger = await connect(Settings.read(environ))
    with pytest.raises(PlanError, match="PLANS_KEYS is not set"):
        await stranger.get_workflow_handle(started.id).result()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_messages_that_are_not_encrypted_are_refused_if_the_operator_says_so(
    environ: dict[str, str], settings: Settings, workspace: Path
) -> None:
    strictly = settings.with_flags(plain="refuse")
    client, plainly = await connect(strictly), await connect(Settings.read(environ))
    async with working(client, strictly):
        started = await Plans(client, settings.task_queue, workspace).start([work("a", requiresApproval=True)])
        await started.until_asked("a")
        await Started(plainly, started.id).approve("a")
        view = await started.until_logged("refused")
        assert "awaiting" in step(view, "a")
        await started.approve("a")
        assert statuses(await started.ended()) == {"a": "completed"}


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_key_that_is_added_while_a_plan_runs_encrypts_what_follows(plans: Plans, settings: Settings) -> None:
    started = await plans.start([work("a"), work("b", "a", requiresApproval=True), work("c", "b")])
    await started.until_asked("b")
    ring = ring_of(settings)
    assert ring
    ring_file(Path(str(settings.of(KeySettings).keys)), FIRST, SECOND)
    await until(lambda: ring.current() == SECOND, "the new ring is noticed")
    await started.approve("b")
    assert statuses(await started.ended()) == dict.fromkeys("abc", "completed")
    used = {bytes(payload) for payload in await key_ids(started)}
    assert used == {FIRST.id.encode(), SECOND.id.encode()}


async def key_ids(started: Started) -> list[bytes]:
    """The ids of keys in the results of the plan's activities."""
    events = [each.activity_task_completed_event_attributes for each in await started.events()]
    return [payload.metadata[KEY_ID] for each in events for payload in each.result.payloads]


@pytest.mark.slow
async def test_prune_keeps_what_encrypted_payloads_refer_to(
    workspace: Path, environ: dict[str, str], temporal_binary: Path, tmp_path: Path
) -> None:
    ring = ring_file(tmp_path / "keys", FIRST, SECOND)
    async with development_server(temporal_binary, tmp_path) as alone:  # it reads every plan there is
        address = environ | {"TEMPORAL_ADDRESS": alone.address}
        settings = Settings.read(address | {"PLANS_KEYS": str(ring)})
        client = await connect(settings)
        async with working(client, settings):
            await _pruned(Plans(client, settings.task_queue, workspace), settings, Settings.read(address))


async def _pruned(plans: Plans, settings: Settings, plainly: Settings) -> None:
    client, workspace = plans.client, plans.workspace
    (workspace / "big.txt").write_text(plans.queue + BIG)
    read = {"id": "r", "tool": "read_file", "args": {"path": "big.txt"}}
    write = {"id": "w", "tool": "write_file", "args": {"path": "copy.txt", "content": "$r"}, "dependsOn": ["r"]}
    started = await plans.start([read, write | {"requiresApproval": True}])
    await started.until_asked("w")

    async def listed() -> bool:
        return await count(client, f"WorkflowId = '{started.id}'") == 1

    await until(listed, "the server lists the plan")
    for path in (settings.state_dir / "values").rglob("*"):
        if path.is_file():
            assert BIG.encode()[:1_000] not in path.read_bytes()
            os.utime(path, (time.time() - 2 * 86_400,) * 2)
    with pytest.raises(PruneRefused, match="PLANS_KEYS is not set"):
        await prune(client, plainly, older_than=timedelta(days=1))
    await prune(client, settings, older_than=timedelta(days=1))
    await started.approve("w")
    view = await started.ended()
    assert statuses(view) == {"r": "completed", "w": "completed"}, step(view, "w")
    assert (workspace / "copy.txt").read_text() == plans.queue + BIG

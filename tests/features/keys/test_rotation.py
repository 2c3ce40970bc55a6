"""Keys rotated while many plans run, with agents and child plans: none is stuck, none loses a step, and the new keys
are used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.keys.codec import KEY_ID
from plansurvive.features.keys.commands import add_key
from plansurvive.features.keys.live import LiveRing
from plansurvive.features.keys.ring import Key
from plansurvive.features.keys.sealing import ring_of
from plansurvive.features.keys.settings import KeySettings
from plansurvive.runtime.connect import connect
from plansurvive.runtime.settings import Settings
from tests.client.cli.command import line_with, running
from tests.features.keys.rings import key, ring_file
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, Started, statuses, work
from tests.kit.waiting import until
from tests.workflows.agents import three_tasks

SOON = timedelta(seconds=3)
"""From adding a key to its use: more than the second in which every process notices a new one."""

KINDS: dict[str, list[dict[str, Any]]] = {
    "approval": [work("a"), work("b", "a", requiresApproval=True), work("c", "b", args={"value": "$b"})],
    "timer": [
        work("a"),
        {"id": "wait", "tool": "sleep", "args": {"seconds": 9}, "dependsOn": ["a"]},
        work("c", "wait", args={"value": "$a"}),
    ],
    "question": [
        {"id": "who", "tool": "ask", "args": {"question": "Who?"}},
        work("c", "who", args={"value": "$who"}),
    ],
    "map": [
        {"id": "each", "forEach": {"items": list("abcd"), "maxParallel": 1}, "tool": "work",
         "args": {"name": "$item", "seconds": 2.5}},
        work("c", "each", args={"value": "$each"}),
    ],
    "large": [work("a", args={"value": "x" * 60_000}), work("b", "a", requiresApproval=True, args={"value": "$a"})],
    "child": [
        {"id": "child", "tool": "plan", "args": {"steps": [
            work("in"), {"id": "nap", "tool": "sleep", "args": {"seconds": 9}, "dependsOn": ["in"]},
            work("out", "nap", args={"value": "$in"}),
        ]}},
        work("c", "child", args={"value": "$child"}),
    ],
    "agent": [
        {"id": "helper", "tool": "agent", "args": {"objective": "Write one, two and three.", "tools": ["work"]}},
        work("c", "helper", args={"value": "$helper"}),
    ],
}  # fmt: skip


@pytest.fixture
def llm() -> Iterator[ScriptedLlm]:
    """A model with which every agent makes three tasks, slowly: its requests lie under different keys."""
    with ScriptedLlm(Script.of(three_tasks(seconds=3.0))) as running:
        yield running


@pytest.fixture
def settings(environ: dict[str, str], tmp_path: Path, llm: ScriptedLlm) -> Settings:
    own = {"PLANS_TOOLS": LEDGER_TOOLS, "OPENAI_BASE_URL": llm.url, "PLANS_MODEL": "demo"}
    return Settings.read(environ | own | {"PLANS_KEYS": str(ring_file(tmp_path / "keys", key()))})


@pytest_asyncio.fixture
async def workers(settings: Settings) -> AsyncIterator[None]:
    """Two workers as processes of their own, which nothing restarts. `environ` has what they need."""
    load_tools(settings.tools)
    environ = {**settings.as_environ(), **settings.temporal, **_HOST}
    async with running(environ, "worker") as first, running(environ, "worker") as second:
        for each in (first, second):
            await line_with(each, "Listening")
        yield


@pytest.fixture(autouse=True)
def host(environ: dict[str, str]) -> None:
    """The variables of this machine, for the workers."""
    _HOST.update({name: environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in environ})


_HOST: dict[str, str] = {}


async def released(plans: Plans, kind: str, started: Started) -> None:
    """Decide what a plan waits for, if it waits for a person."""
    if kind in ("approval", "large"):
        await started.until_asked("b")
        await started.approve("b")
    if kind == "question":
        await started.until_asked("who")
        await started.handle.signal("answer", {"stepId": "who", "value": "ann"})


async def key_ids(started: Started) -> set[bytes]:
    """Ids of the keys of all results of activities of a plan."""
    events = [each.activity_task_completed_event_attributes for each in await started.events()]
    return {payload.metadata[KEY_ID] for each in events for payload in each.result.payloads}


@pytest.mark.slow
@pytest.mark.parametrize("each_kind", [1, 8])
async def test_keys_are_rotated_twice_under_running_plans(
    settings: Settings, workers: None, workspace: Path, each_kind: int
) -> None:
    client: Client = await connect(settings)
    plans = Plans(client, settings.task_queue, workspace)
    begun = [(kind, await plans.start(steps)) for kind, steps in KINDS.items() for _ in range(each_kind)]
    file = Path(str(settings.of(KeySettings).keys))
    ring = ring_of(settings)
    assert ring
    first = ring.current()
    for _ in range(2):
        await _is_used(ring, add_key(file, SOON))
        more = [(kind, await plans.start(steps)) for kind, steps in KINDS.items()]
        half = len(begun) // 2
        await asyncio.gather(*(released(plans, kind, each) for kind, each in begun[:half]))
        done, begun = begun[:half], [*begun[half:], *more]
        await _all_end(done)
    await asyncio.gather(*(released(plans, kind, each) for kind, each in begun))
    await _all_end(begun)
    assert ring.current() != first
    assert {ring.current().id.encode()} & set().union(*[await key_ids(each) for _, each in begun])


async def _is_used(ring: LiveRing, new: Key) -> None:
    await until(lambda: ring.current().id == new.id, "the new key encrypts")


async def _all_end(plans: list[tuple[str, Started]]) -> None:
    async with asyncio.timeout(200):
        views = await asyncio.gather(*(each.ended() for _, each in plans))
    for (kind, _), view in zip(plans, views, strict=True):
        assert set(statuses(view).values()) == {"completed"}, (kind, statuses(view))

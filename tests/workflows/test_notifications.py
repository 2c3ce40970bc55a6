"""People are told of what waits and how plans end: once, in time, whatever is away meanwhile; plans never suffer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.driving import Plans, Started, work
from tests.sinks import Mails, Sink, mailbox, targets_file, webhook_sink
from tests.waiting import until
from tests.workflows.conftest import MakeWorker

ASKS = {"requiresApproval": True}


@pytest.fixture
def hook() -> Iterator[Sink]:
    with webhook_sink() as sink:
        yield sink


@pytest.fixture
def mails() -> Iterator[Mails]:
    with mailbox() as found:
        yield found


@pytest.fixture
def targets(state_dir: Path, hook: Sink) -> Path:
    return targets_file(state_dir / "notify.toml", hook=hook.url)


async def said(sink: Sink, number: int = 1) -> list[dict[str, Any]]:
    """The events of a sink, once there are so many."""
    await until(lambda: len(sink.events) >= number, f"{number} events arrive")
    return sink.events


async def told(client: Client, started: Started) -> dict[str, Any]:
    """What the plan's notifications came to."""
    found: dict[str, Any] = await client.get_workflow_handle(f"notify-{started.id}").query("told")
    return found


async def test_a_waiting_approval_is_told_with_its_whole_call_and_digest(
    idle: Plans, make_worker: MakeWorker, hook: Sink, targets: Path
) -> None:
    async with make_worker(notify=targets):
        started = await idle.start([work("a", **ASKS)], notify="hook", title="Nightly <b>")
        event = (await said(hook))[0]
        item = event["data"]["items"][0]
        pending = (await started.view())["pending"][0]
        assert (event["type"], item["stepId"], item["kind"]) == ("org.plans-that-survive.awaiting", "a", "approval")
        assert item["digest"] == pending["digest"]
        assert item["call"]["args"] == pending["args"]
        assert item["command"] == f"plan approve {started.id.removeprefix('plan-')} a --digest {pending['digest']}"
        assert all(post.is_signed for post in hook.posts)
        await started.approve("a")
        await started.ended()
        last = (await said(hook, 2))[1]
        assert last["type"] == "org.plans-that-survive.completed"
        assert "1 completed" in last["data"]["items"][0]["text"]

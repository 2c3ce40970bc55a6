"""kill -9 while a notification is on its way: it arrives, and its receiver sees it once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.chaos.conftest import Chaos
from tests.chaos.faults import command
from tests.kit.driving import work
from tests.kit.sinks import targets_file, webhook_sink
from tests.kit.waiting import until
from tests.nightly import only_nightly


@pytest.mark.parametrize(
    "point", [only_nightly("before_message"), only_nightly("after_message"), only_nightly("while it is sent")]
)
async def test_a_worker_that_is_killed_while_it_delivers(point: str, chaos: Chaos, state_dir: Path) -> None:
    with webhook_sink() as sink:
        targets_file(state_dir / "notify.toml", hook=sink.url)
        sink.gate.clear() if point == "while it is sent" else None
        if point != "while it is sent":
            chaos.worker.command = command(f"notify:{point}", "kill")
        await chaos.worker.up()
        rule = {"to": "hook", "on": "awaiting"}
        plan = await chaos.plans.start([work("a", requiresApproval=True)], notify=[rule])
        if point == "while it is sent":
            await until(lambda: sink.posts, "the receiver has it, and has not answered")
            chaos.worker.kill()
            sink.gate.set()
        else:
            await chaos.worker.died()
        chaos.worker.command = [sys.executable, "worker.py"]
        await chaos.worker.up()
        attempts = {"before_message": 1, "after_message": 2, "while it is sent": 2}[point]
        await until(lambda: len(sink.posts) >= attempts, "it is sent by the next worker")
        await plan.approve("a")
        await plan.ended()
    assert len(sink.events) == 1
    assert len(sink.posts) == attempts
    assert all(post.is_signed for post in sink.posts)


@pytest.mark.slow
async def test_an_hour_without_the_service_loses_nothing(chaos: Chaos, state_dir: Path) -> None:
    """The sink is away, then worker and server are killed; once all are back, each decision is said once."""
    with webhook_sink() as sink:
        targets_file(state_dir / "notify.toml", hook=sink.url)
        sink.status = 503
        await chaos.worker.up()
        steps = [work(name, requiresApproval=True) for name in ("a", "b")]
        plan = await chaos.plans.start(steps, notify={"to": "hook", "on": ["awaiting", "completed"]})
        await until(lambda: sink.posts, "it is tried")
        chaos.worker.kill()
        chaos.server.kill()
        sink.status = 200
        await chaos.server.up()
        await chaos.worker.up()
        await until(lambda: sink.events, "it arrives")
        for name in ("a", "b"):
            await plan.approve(name)
        await plan.ended()
        await until(lambda: len(sink.events) == 2, "the end arrives")
    asked = [item["stepId"] for event in sink.events for item in event["data"]["items"] if "stepId" in item]
    assert sorted(asked) == ["a", "b"]
    assert len(sink.taken) == 2

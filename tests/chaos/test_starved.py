"""A worker gets no processor for longer than a workflow task may take, while plans run: a suspended or busy machine."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.chaos.conftest import Chaos
from tests.kit.driving import statuses, work
from tests.kit.waiting import until

PLANS, STEPS = 50, 8
STARVED = 15.0
"""Seconds without a processor: longer than the deadlock timeout, and than the server waits for a workflow task."""


@pytest.mark.slow
async def test_fifty_plans_end_whose_worker_is_starved_three_times(chaos: Chaos) -> None:
    await chaos.worker.up()
    process = chaos.worker.running
    assert process is not None
    chain = [work(f"s{number}", *([f"s{number - 1}"] if number else [])) for number in range(STEPS)]
    plans = [await chaos.plans.start(chain) for _ in range(PLANS)]
    for part in (1, 2, 3):
        begun = part * PLANS * STEPS // 4
        await until(lambda begun=begun: len(chaos.plans.ledger) > begun, "steps have run")  # type: ignore[misc]
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(STARVED)  # the fault itself
        process.send_signal(signal.SIGCONT)
    for plan in plans:
        assert set(statuses(await plan.ended()).values()) == {"completed"}
    log = chaos.worker.log.read_text()
    assert "evicted" not in log
    assert "Failed running eviction" not in log
    assert "Exception ignored in" not in log
    assert await chaos.worker.stop() == 0

"""Each container is killed while plans run; Docker starts it again, and every plan ends as if nothing had happened."""

from __future__ import annotations

import time

import pytest

from tests.compose.ledger import STEPS, assert_whole, chain, done, until_done
from tests.compose.stack import LASTING, Stack

REPEATED = {"worker": 1, "temporal": 1, "postgresql": 1}
"""How many commands may run twice: the one that was running, when its worker or its end was lost."""


@pytest.mark.parametrize("service", LASTING)
async def test_plans_end_though_a_container_is_killed(stack: Stack, figures: list[str], service: str) -> None:
    name = f"kill-{service}"
    await stack.start(chain(name))
    await until_done(stack, name, 3)
    before, ran = stack.container(service), len(set(done(stack, name)))
    began = time.monotonic()
    stack.kill(service)
    await stack.until_restarted(service, before)
    restarted = time.monotonic() - began
    await until_done(stack, name, min(ran + 2, STEPS))  # one may have been on its way
    went_on = time.monotonic() - began
    assert await stack.until_ended(name) == "completed"
    doubled = assert_whole(stack, name, doubled=REPEATED.get(service, 0))
    await stack.until_healthy()
    healthy = time.monotonic() - began
    figures.append(
        f"kill -9 of {service}: running after {restarted:.1f} s, the plan goes on after {went_on:.1f} s, healthy after"
        f" {healthy:.0f} s; {STEPS} of {STEPS} steps, {doubled} twice"
    )


async def test_plans_end_though_everything_is_killed_at_once(stack: Stack, figures: list[str]) -> None:
    waiting, running = [f"all-{number}" for number in range(5)], [f"all-running-{number}" for number in range(3)]
    for name in waiting:
        await stack.start(chain(name, asks=True, seconds=0))
    for name in running:
        await stack.start(chain(name))
    for name in running:
        await until_done(stack, name, 2)
    before = {service: stack.container(service) for service in LASTING}
    began = time.monotonic()
    for service in LASTING:
        stack.kill(service)
    for service in LASTING:
        await stack.until_restarted(service, before[service])
    await stack.until_healthy()
    healthy = time.monotonic() - began
    for name in waiting:
        await stack.until_asked(name)
        approved = await stack.plan("approve", name, "gate")
        assert approved.code == 0, approved.out + approved.err
    assert {await stack.until_ended(name) for name in waiting + running} == {"completed"}
    doubled = sum(assert_whole(stack, name, doubled=1) for name in waiting + running)
    figures.append(
        f"kill -9 of all {len(LASTING)}: healthy after {healthy:.0f} s, {len(waiting + running)} of"
        f" {len(waiting + running)} plans completed, {doubled} steps twice"
    )

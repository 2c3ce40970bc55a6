"""Twenty bad starts of every kind within a second, and a plan beside them: it may take three times as long as alone.

Plans alone and then plans beside bad starts, in one run, are compared with each other, so that no time is absolute.
They take no turns: what bad starts leave behind would slow the next plan alone. A kind that stalls a worker (a start
that is retried in its slot did so for minutes) makes the plan beside it, or the one after, many times as long.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median, quantiles
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowExecutionStatus
from temporalio.common import RawValue

from tests.fuzz.conftest import Serving
from tests.fuzz.judge import CEILING
from tests.fuzz.shapes import UNDECODABLE
from tests.fuzz.test_server import INCONSISTENT, start_raw
from tests.kit.driving import Plans, Started, statuses, step, terminated, work
from tests.kit.waiting import until
from tests.nightly import only_nightly

TIMES = 3.0
"""How much longer a plan may take beside bad starts, p95."""
STANDS_STILL = 10 * TIMES
"""Times as long as alone after which a plan is waited for no longer, and no further round begins."""
STEPS = 40
"""Of the plan beside them: enough that it still runs when the last of them is taken up."""
IDS = ("plan-x y{}", "plan-ä{}", "plan-x\n\x1b[31m{}", "plan-" + "x" * 200 + "{}", "agent-[x]{}", "-{}")
"""Workflow ids that no plan can have."""
HOSTILE = ("../../etc", "\x1b]0;x\x07", "gate\u202e", "x" * 100_000, "$gate", "{{gate}}", "")
"""Ids of steps in signals."""
BOMB = "inputs.x" + " |[@,@]" * 27 + "|length(to_string(@))"


def named() -> str:
    return f"plan-bad-{uuid.uuid4().hex[:12]}"


async def started(plans: Plans, kind: str, argument: Any, name: str = "", **more: Any) -> str:
    """Start a workflow with JSON that no client of ours would send."""
    raw = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(argument).encode()))
    handle = await plans.client.start_workflow(
        kind, raw, id=name or named(), task_queue=plans.queue, execution_timeout=CEILING, **more
    )
    return handle.id


def bad_starts(plans: Plans) -> list[Callable[[], Awaitable[str]]]:
    """Twenty of them."""
    options = {"workspace": str(plans.workspace)}
    good = {"plan": {"steps": [work("gate", requiresApproval=True)]}, "options": options}
    kinds = ("PlanWorkflow", "AgentWorkflow", "ChangesWorkflow", "PlanWorkflow")
    shapes = ("missing content", "unknown encoding", "no encoding", "broken JSON")

    def start(argument: Any, kind: str = "PlanWorkflow", name: str = "", **more: Any) -> Callable[[], Awaitable[str]]:
        return partial(started, plans, kind, argument, name, **more)

    found: list[Callable[[], Awaitable[str]]] = [
        partial(start_raw, plans.client, plans.queue, kind, "argument", UNDECODABLE[shape])
        for kind, shape in zip(kinds, shapes, strict=True)
    ]
    found += [start(good, name=name.format(uuid.uuid4().hex[:8])) for name in IDS]
    found += [
        start({**good, "plan": {"id": "deploy", "steps": [work("a")]}}),  # the id of another plan
        start({"run": INCONSISTENT[0]}),
        start(good, kind="NoSuchWorkflow"),
        start({"plan": {"steps": [work(f"s{n}") for n in range(2_000)]}, "options": {"workspace": "/no/such"}}),
        start({"plan": {"steps": [work("a", args={"value": "x" * 1_500_000})] * 2}, "options": options}),
        start({"plan": {"steps": [work("a", "b"), work("b", "a")]}, "options": options}),
        start({"plan": {"steps": [work(f"s{n}", when=BOMB) for n in range(3)],
                        "inputs": {"x": {"type": "array", "default": [1, 2]}}}, "options": options}),
        start([[[]]] * 1_000, kind="AgentWorkflow"),
        start(good, start_signal="approve", start_signal_args=[{"stepId": HOSTILE[1]}]),
        partial(signalled, plans, good),
    ]  # fmt: skip
    assert len(found) == 20
    return found


async def signalled(plans: Plans, argument: Any) -> str:
    """Start a plan that waits, and send it signals with hostile ids."""
    name = await started(plans, "PlanWorkflow", argument)
    for hostile in HOSTILE:
        await Started(plans.client, name).signal("approve", {"stepId": hostile, "by": hostile})
    return name


async def seconds(plans: Plans) -> float:
    """How long a plan took, by the server's clock."""
    chain = [work(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(STEPS)]
    plan = await plans.start(chain)
    assert set(statuses(await plan.ended()).values()) == {"completed"}
    described = await plan.handle.describe()
    assert described.close_time is not None
    return (described.close_time - described.start_time).total_seconds()


async def within(plans: Plans, limit: float) -> float:
    """How long a plan took; no longer than `limit`."""
    try:
        async with asyncio.timeout(limit):
            return await seconds(plans)
    except TimeoutError:
        return limit


async def beside(plans: Plans, limit: float) -> list[float]:
    """The same, of a plan while twenty bad starts are made within a second, and of one after."""

    async def later(number: int, start: Callable[[], Awaitable[str]]) -> str:
        await asyncio.sleep(number / 20)
        return await start()

    bad = asyncio.gather(*(later(number, start) for number, start in enumerate(bad_starts(plans))))
    took, names = [await within(plans, limit)], await bad
    took.append(await within(plans, limit))
    for name in names:
        await terminated(plans.client, name)
    return took


def p95(samples: list[float]) -> float:
    return quantiles(samples, n=20, method="inclusive")[-1]


@pytest.mark.parametrize("rounds", [only_nightly(4), only_nightly(20)])
async def test_a_plan_beside_twenty_bad_starts_takes_at_most_three_times_as_long_as_alone(
    plans: Plans, serving: Serving, rounds: int
) -> None:
    alone, accompanied = list[float](), list[float]()
    async with serving():
        await seconds(plans)  # the first plan of a worker loads what the others find
        for _ in range(rounds):
            alone.append(await seconds(plans))
        limit = STANDS_STILL * max(alone)
        for _ in range(rounds):
            accompanied += await beside(plans, limit)
            assert max(accompanied) < limit, f"it took longer than {limit:.1f} s, and {max(alone):.2f} s at most alone"
    of = p95 if rounds >= 20 else median  # of a few, the slowest tells of the machine
    ratio = of(accompanied) / of(alone)
    print(f"{of.__name__}: {of(alone):.2f} s alone, {of(accompanied):.2f} s beside bad starts: {ratio:.2f} times")
    assert ratio <= TIMES, (alone, accompanied)


async def test_the_bad_starts_are_taken_up_and_fail_and_the_others_wait(plans: Plans, serving: Serving) -> None:
    """Control: each is work for the worker; an unknown type and the two whose plan is sound stay open."""
    async with serving():
        handles = [plans.client.get_workflow_handle(await start()) for start in bad_starts(plans)]

        async def have_failed() -> bool:
            found = [(await each.describe()).status for each in handles]
            return found.count(WorkflowExecutionStatus.FAILED) == 17

        await until(have_failed, "all that are bad in themselves have failed")
        for number in (-2, -1):
            view = await Started(plans.client, handles[number].id).until_logged("refused")
            assert "awaiting" in step(view, "gate")
        for handle in handles:
            await terminated(plans.client, handle.id)

"""Fuzzing a worker through a real server: nothing that anybody sends leaves a workflow stuck, or its worker stalled.

Every test ends with a plan of another user on the same worker, which must complete. Each defence has a control: the
same input against a worker without it, which is seen to get stuck.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import uuid
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from temporalio.api.common.v1 import Header, Memo, Payload, Payloads, WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    SignalWithStartWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter
from temporalio.service import RPCError

from tests.fuzz import mutate, states
from tests.fuzz.conftest import Serving
from tests.fuzz.judge import CEILING, STUCK, Verdict, gathered, judged
from tests.fuzz.shapes import NO_MESSAGES, UNDECODABLE
from tests.kit.driving import Plans, refusals, statuses, work
from tests.nightly import only_nightly

KINDS = ("PlanWorkflow", "AgentWorkflow", "ChangesWorkflow")
GOOD: dict[str, Any] = {
    "PlanWorkflow": {
        "plan": {"steps": [work("gate", requiresApproval=True)]}
    },
    "AgentWorkflow": {"order": {"request": "count to three"}},
    "ChangesWorkflow": {"planId": "fuzz"},
}  # fmt: skip
"""By workflow, an argument that is accepted."""
_STATES_ID = re.compile(r'(\\?"id\\?": ?\\?")(?:agent-)?fuzz(?:-r2)?(\\?")')
"""The id of a plan or an agent in a state of `states`, which must be that of the workflow it is sent to."""
PLACES = ("argument", "second argument", "memo", "header", "signal with start")
SIGNALS = (
    "approve",
    "deny",
    "pause",
    "unpause",
    "begin",
    "files_changed",
    "clear_session",
    "agent_progress",
    "nonsense",
)
UPDATES = ("decide", "control", "edit", "regenerate", "nonsense")
QUERIES = ("plan", "events", "stamps", "text", "summary", "state", "file", "tools", "nonsense")


def named(kind: str) -> str:
    """A new workflow id for the kind."""
    return {"PlanWorkflow": "plan-", "AgentWorkflow": "agent-"}.get(kind, "fuzz-") + f"fuzz-{uuid.uuid4().hex[:12]}"


async def unharmed(plans: Plans, verdict: Verdict, count: int, seed: int) -> None:
    """Nothing is stuck, and a bystander's plan on the same worker completes."""
    ended = f"{verdict.ended} ended ({verdict.completed} completed)"
    others = f"{verdict.open} open, {verdict.refused} not taken, {len(verdict.stuck)} stuck"
    print(f"{count} inputs, seed {seed}: {ended}, {others}")
    assert verdict.total == count
    assert not verdict.stuck, f"seed {seed}: {verdict.stuck[:3]}"
    view = await plans.run([work("a"), work("b", "a")])
    assert statuses(view) == {"a": "completed", "b": "completed"}


def starts(plans: Plans) -> Any:
    """Starts the workflow of a kind with an argument."""

    async def start(given: tuple[str, Any]) -> str:
        kind, argument = given
        name = named(kind)
        text = json.dumps(argument)  # with NaN and lone surrogates, which a typed client would not send
        own = _STATES_ID.sub(rf"\g<1>{name.removeprefix('plan-')}\g<2>", text)
        raw = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=own.encode()))
        await plans.client.start_workflow(kind, raw, id=name, task_queue=plans.queue, execution_timeout=CEILING)
        return name

    return start


@pytest.mark.parametrize("count", [15, only_nightly(600)])
async def test_mutated_plans_as_start_arguments(plans: Plans, serving: Serving, count: int, fuzz_seed: int) -> None:
    rng = random.Random(fuzz_seed)
    options = {"workspace": str(plans.workspace), "approveAll": True}
    inputs = [("PlanWorkflow", {"plan": mutate.mutated_plan(rng), "options": options}) for _ in range(count)]
    for index in range(0, count, 10):
        inputs[index] = ("PlanWorkflow", mutate.faulty(rng, inputs[index][1], 2))
    async with serving():
        await unharmed(plans, await judged(plans.client, inputs, starts(plans)), count, fuzz_seed)


@pytest.mark.parametrize("count", [15, only_nightly(500)])
async def test_states_made_by_hand(plans: Plans, serving: Serving, count: int, fuzz_seed: int) -> None:
    rng = random.Random(fuzz_seed)
    inputs = [states.hand_made(rng, str(plans.workspace)) for _ in range(count)]
    async with serving():
        await unharmed(plans, await judged(plans.client, inputs, starts(plans)), count, fuzz_seed)


INCONSISTENT: list[dict[str, Any]] = [
    {"status": "running", "steps": {"s": {"status": "running"}}, "plan": {"id": "fuzz", "steps": [work("s")]}},
    {"status": "running", "steps": {}, "plan": {"id": "fuzz", "steps": [work("s")]}},
]
"""States that the workflow itself never writes."""


async def test_such_states_would_be_stuck_unchecked(plans: Plans, serving: Serving) -> None:
    async def carried(given: Any) -> str:
        name = named("PlanWorkflow")
        given = {**given, "plan": {**given["plan"], "id": name.removeprefix("plan-")}}
        await plans.client.start_workflow(
            "Carry", args=["PlanWorkflow", {"run": given}], id=name, task_queue=plans.queue, execution_timeout=CEILING
        )
        return name

    async with serving():
        unchecked = await judged(plans.client, INCONSISTENT, carried, attempts=2)
        assert len(unchecked.stuck) == len(INCONSISTENT)
        given = [("PlanWorkflow", {"run": state}) for state in INCONSISTENT]
        assert (await judged(plans.client, given, starts(plans))).ended == len(INCONSISTENT)


async def start_raw(client: Client, queue: str, kind: str, place: str, payload: Payload) -> str:
    """Start a workflow with a payload at some place, as a client of another kind would."""
    good = Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(GOOD[kind]).encode())
    arguments = {"argument": [payload], "second argument": [good, payload]}.get(place, [good])
    name = named(kind)
    timeout = {"seconds": int(CEILING.total_seconds())}
    common: dict[str, Any] = {
        "namespace": client.namespace, "workflow_id": name, "workflow_type": WorkflowType(name=kind),
        "task_queue": TaskQueue(name=queue), "input": Payloads(payloads=arguments), "request_id": name,
        "workflow_execution_timeout": timeout,
        "memo": Memo(fields={"title": payload} if place == "memo" else {}),
        "header": Header(fields={"x": payload} if place == "header" else {}),
    }  # fmt: skip
    if place == "signal with start":
        request = SignalWithStartWorkflowExecutionRequest(
            **common, signal_name="approve", signal_input=Payloads(payloads=[payload])
        )
        await client.workflow_service.signal_with_start_workflow_execution(request)
    else:
        await client.workflow_service.start_workflow_execution(StartWorkflowExecutionRequest(**common))
    return name


def undecodable_starts(count: int, seed: int) -> list[tuple[str, str, str]]:
    """So many combinations of workflow, place and payload; every one, if there are as many."""
    every = list(itertools.product(KINDS, PLACES, UNDECODABLE))
    random.Random(seed).shuffle(every)
    return every[:count]


async def judged_starts(plans: Plans, inputs: Sequence[tuple[str, str, str]], attempts: int = STUCK) -> Verdict:
    """The verdict on starts with undecodable payloads."""

    async def start(given: tuple[str, str, str]) -> str:
        kind, place, shape = given
        return await start_raw(plans.client, plans.queue, kind, place, UNDECODABLE[shape])

    return await judged(plans.client, inputs, start, attempts)


@pytest.mark.parametrize("count", [15, only_nightly(225)])
async def test_starts_that_cannot_be_decoded(plans: Plans, serving: Serving, count: int, fuzz_seed: int) -> None:
    inputs = undecodable_starts(count, fuzz_seed)
    async with serving():
        await unharmed(plans, await judged_starts(plans, inputs), count, fuzz_seed)


async def test_they_would_be_stuck_with_the_converter_of_the_sdk(plans: Plans, serving: Serving) -> None:
    config = plans.client.config()
    config["data_converter"] = DataConverter(
        payload_converter_class=PydanticPayloadConverter,
        external_storage=plans.client.data_converter.external_storage,
    )
    inputs = [("PlanWorkflow", "argument", shape) for shape in ("missing content", "unknown encoding", "no encoding")]
    async with serving(Client(**config)):
        assert len((await judged_starts(plans, inputs, attempts=2)).stuck) == len(inputs)


async def one_message(plans: Plans, rng: random.Random) -> None:
    """Send one bad message to a plan that awaits an approval. Approved, it completes."""
    plan = await plans.start([work("gate", requiresApproval=True)])
    await plan.until_asked("gate")
    bad = RawValue(rng.choice(list(UNDECODABLE.values()))) if rng.random() < 0.5 else rng.choice(NO_MESSAGES)
    way, deadline = rng.choice(("signal", "update", "query")), timedelta(seconds=60)
    sent = [bad] * rng.choice((1, 1, 1, 2, 5))
    try:
        if way == "signal":
            await plan.handle.signal(rng.choice(SIGNALS), args=sent)
        elif way == "update":
            await plan.handle.execute_update(rng.choice(UPDATES), args=sent, rpc_timeout=deadline)
        else:
            await plan.handle.query(rng.choice(QUERIES), args=sent, rpc_timeout=deadline)
    except (WorkflowUpdateFailedError, WorkflowQueryFailedError, RPCError, ValueError):
        pass
    await plan.approve("gate")
    assert statuses(await plan.ended()) == {"gate": "completed"}, (way, bad)


@pytest.mark.parametrize("count", [15, only_nightly(100)])
async def test_single_bad_messages_leave_a_plan_able_to_complete(
    plans: Plans, serving: Serving, count: int, fuzz_seed: int
) -> None:
    rng = random.Random(fuzz_seed)
    seeds = [random.Random(rng.random()) for _ in range(count)]
    async with serving():
        await gathered([partial(one_message, plans, seed) for seed in seeds], at_once=10)
        await unharmed(plans, Verdict(ended=count), count, fuzz_seed)


@pytest.mark.slow
@pytest.mark.sampled
async def test_a_plan_outlives_oversized_messages(plans: Plans, serving: Serving) -> None:
    """The server ends a workflow whose history exceeds 50 MB; the plan continues as new before."""
    async with serving():
        plan = await plans.start([work("gate", requiresApproval=True)])
        await plan.until_asked("gate")
        config = plans.client.config()
        config["data_converter"] = DataConverter.default  # stores nothing outside history
        foreign = Client(**config).get_workflow_handle(plan.id)
        for number in range(5):
            await foreign.signal("approve", "x" * 1_900_000)
            await plan.until(lambda view: len(refusals(view)) > number, "the message is refused")  # noqa: B023
        await plan.approve("gate")
        view = await plan.ended()
        assert statuses(view) == {"gate": "completed"}
        assert len(refusals(view)) == 5
        assert len(await plan.histories()) > 1

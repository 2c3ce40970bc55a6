"""Agents interrupted and resumed, long ones, and their history: nothing is done twice, nothing is forgotten."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from temporalio.service import RPCError

from plansurvive.client.verbs import resume
from plansurvive.features.agents import verbs
from plansurvive.features.agents.history_store import AgentHistory
from plansurvive.features.agents.model.history import Entry
from plansurvive.plans.errors import Refused
from plansurvive.runtime.settings import Settings
from tests.kit.driving import WAITS, Plans, Started
from tests.kit.waiting import until
from tests.nightly import sampled
from tests.workflows.agents import Serving, call, says, serving, three_tasks

pytestmark = pytest.mark.uses("agents")

CHARACTERS_PER_TOKEN = 4
PAYLOAD_WARNING = 512_000
"""Bytes of a payload from which on the server complains; it refuses 2 MB."""


@pytest.fixture
def serve(idle: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A scripted LLM and a worker that uses it."""
    return serving(idle, make_worker)


async def _resumed(plans: Plans, ended: Started) -> Started:
    started = await resume.resume(plans.client, ended.id, "ann")
    return Started(plans.client, started.workflow_id)


async def _recorded(plans: Plans, *names: str) -> dict[str, Entry]:
    """The agent history of these runs from the server, once its visibility index shows all of them as ended."""
    entries = {entry.agent_id: entry for entry in await verbs.recorded(plans.client) if entry.agent_id in names}
    return entries if sum(bool(entry.completion_timestamp) for entry in entries.values()) == len(names) else {}


@pytest.mark.modes("plain")
@pytest.mark.parametrize("seed", sampled(range(20), 2))
async def test_wherever_an_agent_is_interrupted_it_ends_as_if_it_had_not_been(serve: Serving, seed: int) -> None:
    chance = random.Random(seed)
    async with serve(three_tasks(seconds=0.05)) as agents:
        agent = await agents.start("Write three things.")
        for _ in range(3):
            await asyncio.sleep(chance.uniform(0.0, 0.5))
            with suppress(RPCError):  # it had ended
                await agent.signal("interrupt")
            if (await agent.ended())["status"] == "completed":
                break
            agent = await _resumed(agents.plans, agent)
        view = await agent.ended()
        if view["status"] != "completed":
            view = await (await _resumed(agents.plans, agent)).ended()
        ledger = agents.plans.ledger
    assert (view["status"], view["agent"]["answer"]) == ("completed", "All written.")
    assert [line[1] for line in ledger if line[0] == "end"] == ["one", "two", "three"]


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.crosses_runs
@pytest.mark.on_server("lists")
async def test_the_runs_of_agents_are_in_the_history_and_it_can_be_made_anew(
    serve: Serving, settings: Settings
) -> None:
    store = AgentHistory(settings.state_dir)
    async with serve(three_tasks(**WAITS)) as agents:
        agent = await agents.start("Write three things.")
        await agent.until(lambda view: view["steps"], "a call")
        assert [entry.agent_id for entry in store.active()] == [agent.id]
        await agent.signal("interrupt", {"by": "ann"})
        await agent.until(lambda view: view["stopped"], "it is interrupted")
        agents.plans.go()
        assert (await agent.ended())["agent"]["end"] == "interrupted"
        resumable = store.resumable()
        assert resumable is not None
        assert resumable.agent_id == agent.id
        later = await _resumed(agents.plans, agent)
        assert (await later.ended())["status"] == "completed"
        with pytest.raises(Refused, match="resumed as"):
            await _resumed(agents.plans, agent)
        kept = {entry.agent_id: entry for entry in store.read().history.entries}
        made = await until(lambda: _recorded(agents.plans, agent.id, later.id), "the server's index tells both ends")
    for found in (kept, made):
        assert (found[agent.id].status, found[agent.id].resumed_by) == ("resumed", later.id)
        assert (found[later.id].status, found[later.id].resumes) == ("completed", agent.id)


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_a_hundred_model_calls_with_200_000_tokens_of_context_leave_a_small_history(serve: Serving) -> None:
    again = says({"reasoning": "go on", "tool_calls": [call("read_file", path="big.txt")]}, times=100)
    async with serve([again]) as agents:
        text = "all work and no play\n" * 400
        assert len(text) * 100 > 200_000 * CHARACTERS_PER_TOKEN
        (agents.plans.workspace / "big.txt").write_text(text)
        agent = await agents.start("Read it again and again.", limits={"iterations": 100, "tokens": 10_000_000})
        view = await agent.ended()
        histories = await agent.histories()
    assert (view["agent"]["end"], view["agent"]["usage"]["iterations"]) == ("iterations", 100)
    assert view["agent"]["usage"]["tokens"] > 200_000
    size = sum(history_size(history) for history in histories)
    assert size < 2_000_000, size
    largest = max(event.ByteSize() for history in histories for event in history.events)
    assert largest < PAYLOAD_WARNING, largest


def history_size(history: Any) -> int:
    """Size of all history events in bytes."""
    return sum(event.ByteSize() for event in history.events)

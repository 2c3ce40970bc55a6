"""Replays of agents that a real server and worker have recorded: unchanged they are identical, and call no tool."""

from __future__ import annotations

import pytest
from temporalio.client import Client

from plansurvive.apps.evaluation.asking import Spending
from plansurvive.apps.evaluation.replay import replay
from plansurvive.runtime.settings import Settings
from tests.apps.evaluation.recorded_runs import FIRST, LATER, WORKS, asked_for, call, lab, says

DEMO = [says(WORKS, FIRST), says({"answer": "Both are written."}, LATER)]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_run_replayed_unchanged_is_identical_and_calls_no_tool(
    temporal_client: Client, settings: Settings
) -> None:
    async with lab(temporal_client, settings, DEMO) as here:
        name = await here.recorded("Write one and two")
        assert "end two" in here.ledger
        asked = len(here.llm.bodies)
        here.forget()
        found = await replay(temporal_client, name)
        again = await replay(temporal_client, name, here.asking())
        assert here.written == []
    assert found.identical, found
    assert again.identical, again
    assert again.model == "demo"
    [run] = found.runs
    assert (run.check.was.requests, run.check.was.calls, run.check.now.end) == (2, 2, "completed")
    assert run.anew is None
    assert len(here.llm.bodies) == asked + 2  # by the second replay alone
    assert [body["messages"] for body in here.llm.bodies[:2]] == [body["messages"] for body in here.llm.bodies[2:]]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_another_model_shows_what_differs_in_calls_tokens_and_cost(
    temporal_client: Client, settings: Settings
) -> None:
    story = [
        says(WORKS, FIRST, prompt=100, completion=10),
        says({"answer": "Both are written."}, LATER, prompt=200, completion=10),
        says({"tool_calls": [call("work", name="two")]}, FIRST, "other", prompt=50, completion=5),
        says({"answer": "Two was there."}, LATER, "other", prompt=60, completion=5),
    ]
    prices = settings.with_flags(llm_prices=("demo=1000/10000", "other=2000/20000"))
    async with lab(temporal_client, settings, story) as here:
        name = await here.recorded("Write one and two")
        here.forget()
        found = await replay(temporal_client, name, here.asking("other"), spending=Spending(prices.cost_of))
        assert here.written == []
    [run] = found.runs
    assert run.check.identical
    assert not found.identical
    assert run.anew is not None
    assert run.anew.differs == ["answers", "tokens", "calls", "answer"]
    assert [(each.was, each.now) for each in run.anew.changes if each.what == "calls"] == [
        ('work {"name": "one"}', None)
    ]
    assert (run.anew.was.tokens, run.anew.now.tokens) == (320, 120)
    assert (found.was.cost, found.now.cost) == (0.5, 0.42)
    assert (found.was.calls, found.now.calls) == (2, 1)
    assert run.anew.missing == ""


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("goes_on", [False, True])
async def test_a_call_that_is_not_in_the_record_ends_the_replay_or_fails(
    goes_on: bool, temporal_client: Client, settings: Settings
) -> None:
    story = [
        *DEMO,
        says({"tool_calls": [call("work", name="three")]}, FIRST, "other"),
        says({"answer": "Three could not be written."}, LATER, "other"),
    ]
    async with lab(temporal_client, settings, story) as here:
        name = await here.recorded("Write one and two")
        here.forget()
        found = await replay(temporal_client, name, here.asking("other"), goes_on=goes_on)
        assert here.written == []
        last = here.llm.bodies[-1]["messages"][-1]["content"]
    told = found.runs[0].anew
    assert told is not None
    assert (told.missing, told.missed) == ('work {"name": "three"}', 1)
    assert bool(told.stopped) is not goes_on
    assert (told.now.requests, told.now.end) == ((2, "completed") if goes_on else (1, ""))
    assert ("not in the record of the run that is replayed" in last) is goes_on


async def test_what_people_decided_is_decided_again_and_nobody_is_asked(
    temporal_client: Client, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    signs = {"tool_calls": [call("sign", text="a", path="1"), call("sign", text="b", path="2")]}
    story = [
        says(signs, FIRST), says({"answer": "Signed c only."}, LATER),
        says({"tool_calls": signs["tool_calls"][1:]}, FIRST, "other"), says({"answer": "None."}, LATER, "other"),
    ]  # fmt: skip
    async with lab(temporal_client, settings, story) as here:
        started = await here.start("Sign a and b")
        await started.until(lambda view: len(asked_for(view)) == 2, "both calls await approval")
        await started.approve("call_1", by="ann", args={"text": "c"})
        await started.deny("call_2", by="bob", comment="not b")
        await started.ended()
        assert here.ledger == "signed c\n"
        here.forget()
        found = await replay(temporal_client, started.id)
        other = await replay(temporal_client, started.id, here.asking("other"))
        assert here.written == []
        assert "Cannot" not in caplog.text  # a warning of the SDK's would stand on the user's terminal
        last = here.llm.bodies[-1]["messages"][-1]["content"]
    assert found.identical, found
    assert found.was.calls == 1
    assert other.runs[0].anew is not None
    assert other.runs[0].anew.now.calls == 0
    assert 'denied by "bob"' in last
    assert "not b" in last


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_run_that_was_interrupted_is_replayed_as_far_as_it_came(
    temporal_client: Client, settings: Settings
) -> None:
    story = [says({"tool_calls": [call("work", name="one"), call("sign", text="a")]}, FIRST)]
    async with lab(temporal_client, settings, story) as here:
        started = await here.start("Write and sign")
        await started.until(asked_for, "a call awaits approval")
        open_run = await replay(temporal_client, started.id)
        await started.signal("interrupt")
        await started.ended()
        found = await replay(temporal_client, started.id)
        again = await replay(temporal_client, started.id, here.asking())
    for each in (open_run, found, again):
        assert each.identical, each
        assert (each.now.requests, each.now.calls) == (1, 1)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_failed_calls_unusable_answers_and_results_read_on_are_replayed_too(
    temporal_client: Client, settings: Settings
) -> None:
    story = [
        says({"tool_calls": [call("refuse", code="NO"), call("work", name="long", value="x" * 9_000)]}, FIRST),
        {
            "when": {"any": "PROBLEMS", "model": "demo"},
            "reply": {"json": {"tool_calls": [call("read_result", call=2)]}},
        },
        {"when": {"last": LATER, "model": "demo"}, "reply": {"text": "no JSON at all"}},
        says({"answer": "It is long."}, LATER),
    ]
    async with lab(temporal_client, settings, story) as here:
        name = await here.recorded("Read the long one")
        here.forget()
        found = await replay(temporal_client, name)
        assert here.written == []
    assert found.identical, found
    assert (found.was.requests, found.was.failed) == (4, 1)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_limit_of_tokens_ends_a_replay_before_it_asks(temporal_client: Client, settings: Settings) -> None:
    async with lab(temporal_client, settings, DEMO) as here:
        name = await here.recorded("Write one and two")
        asked = len(here.llm.bodies)
        found = await replay(temporal_client, name, here.asking(), spending=Spending(max_tokens=100))
    told = found.runs[0].anew
    assert told is not None
    assert "the limit of this evaluation is reached" in told.stopped
    assert len(here.llm.bodies) == asked

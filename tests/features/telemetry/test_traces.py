"""The trace of a plan is one tree: through retries, continue-as-new, replay, blocks, agents and child plans.

The collector is real: OTLP over HTTP. In the night the worker replays every workflow task as well, and what a replay
doubled would be seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.telemetry.observer import Observer
from plansurvive.features.telemetry.propagation import CarriesTrace
from plansurvive.features.telemetry.span_export import SpanExport
from plansurvive.features.telemetry.spans import SCHEMA_URL
from plansurvive.runtime.settings import Settings
from plansurvive.worker import CACHED_WORKFLOWS, build
from tests.kit import LEDGER_TOOLS
from tests.kit.collector import Collector, collector, lines
from tests.kit.driving import Plans, work
from tests.kit.waiting import until
from tests.nightly import only_nightly, only_sampled
from tests.workflows.agents import call, says

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
QUICK_TOOLS = str(Path(__file__).parents[2] / "workflows/quick_tools.py")
SECRET = "canary-4f6d7a81"

Traced = Callable[..., AbstractAsyncContextManager[Plans]]


@pytest.fixture
def sink() -> Iterator[Collector]:
    with collector() as found:
        yield found


@pytest.fixture
def traced(temporal_client: Client, settings: Settings, workspace: Path, sink: Collector) -> Traced:
    """A worker that exports to the collector, and plans of a client that carries traces."""

    @asynccontextmanager
    async def working(caller: str = "", cached: int = CACHED_WORKFLOWS, **changed: Any) -> AsyncIterator[Plans]:
        export = SpanExport("1.0", OTLPSpanExporter(f"{sink.url}/v1/traces"))
        options = temporal_client.config()
        chosen = settings.with_flags(**changed)
        client = Client(**options | {"interceptors": [CarriesTrace(lambda: export.samples, {"TRACEPARENT": caller})]})
        observed = Client(
            **client.config() | {"interceptors": [*client.config()["interceptors"], Observer(chosen, export)]}
        )
        worker: Worker = build(observed, chosen, load_tools([LEDGER_TOOLS, QUICK_TOOLS]), indexed=True, cached=cached)
        async with worker:
            yield Plans(client, settings.task_queue, workspace, {"historyLimit": 10})
        export.close()

    return working


@pytest.mark.parametrize("cached", [only_sampled(CACHED_WORKFLOWS), only_nightly(0)])
async def test_a_plan_with_retries_and_continue_as_new_is_one_tree(
    cached: int, traced: Traced, sink: Collector
) -> None:
    retry = {"attempts": 4, "delay": 0.01}
    steps = [
        work("first"),
        work("again", "first", args={"fails": 3}, retry=retry),
        work("broken", "first", args={"fails": 9}, retry={"attempts": 2, "delay": 0.01}),
        {"id": "each", "dependsOn": ["first"], "forEach": {"items": ["a", "b"]}, "steps": [work("inner")]},
        {"id": "nap", "tool": "sleep", "args": {"seconds": 0.01}, "dependsOn": ["again"]},
        work("never", "broken"),
    ]
    async with traced(cached=cached) as plans:
        plan = await plans.start(steps)
        await plan.ended()
        assert len(await plan.histories()) > 1
    assert sorted(line.strip() for line in lines(sink.spans)) == sorted([
        "plan",
        "step work first",
        "execute_tool work first 1",
        "step work again",
        "execute_tool work again 1 !BUSY",
        "execute_tool work again 2 !BUSY",
        "execute_tool work again 3 !BUSY",
        "execute_tool work again 4",
        "step work broken !BUSY",
        "execute_tool work broken 1 !BUSY",
        "execute_tool work broken 2 !BUSY",
        "step block each",
        "step block each[0]",
        "step work each[0].inner",
        "execute_tool work each[0].inner 1",
        "step block each[1]",
        "step work each[1].inner",
        "execute_tool work each[1].inner 1",
        "step sleep nap",
    ])  # fmt: skip
    tree = lines(sink.spans)
    assert "      step work each[0].inner" in tree
    assert "        execute_tool work each[0].inner 1" in tree
    assert {span.schema_url for span in sink.spans} == {SCHEMA_URL}
    assert {span.service for span in sink.spans} == {"plans"}


@pytest.mark.uses("express")
async def test_steps_of_a_segment_have_the_spans_of_activities(traced: Traced, sink: Collector) -> None:
    def tick(name: str, *needs: str, **args: Any) -> dict[str, Any]:
        more = {"retry": {"attempts": 3, "delay": 0.01}} if "fails" in args else {}
        return {"id": name, "tool": "tick", "args": {"name": name, **args}, "dependsOn": list(needs), **more}

    inner = {"id": "each", "forEach": {"items": ["a", "b"]}, "steps": [tick("inner")], "dependsOn": ["second"]}
    steps = [tick("first", seconds=0.05), tick("second", "first"), inner, tick("again", "each", fails=1)]
    async with traced() as plans:
        await (await plans.start(steps, express={"seconds": 10})).ended()
    assert sorted(line.strip() for line in lines(sink.spans)) == sorted([
        "plan",
        "step tick first",
        "execute_tool tick first 1",
        "step tick second",
        "execute_tool tick second 1",
        "step block each",
        "step block each[0]",
        "step tick each[0].inner",
        "execute_tool tick each[0].inner 1",
        "step block each[1]",
        "step tick each[1].inner",
        "execute_tool tick each[1].inner 1",
        "step tick again",
        "execute_tool tick again 1 !BUSY",
        "execute_tool tick again 2",
    ])  # fmt: skip
    first, second = sink.named("step tick")[:2]
    assert first.ended - first.began >= 0.05e9
    assert first.ended <= second.began


@pytest.mark.slow
async def test_agents_child_plans_and_llm_requests_are_below_their_step_in_the_callers_trace(
    traced: Traced, sink: Collector
) -> None:
    story = [
        says({"tool_calls": [call("work", name=SECRET)]}),
        says({"answer": f"{SECRET} is done"}),
    ]
    steps = [
        {"id": "agent", "tool": "agent", "args": {"objective": f"Write {SECRET}.", "maxCalls": 5}},
        {"id": "child", "tool": "plan", "args": {"steps": [work("inside", args={"value": SECRET})]}},
    ]
    with ScriptedLlm(Script.of(story)) as llm:
        async with traced(CALLER, openai_base_url=llm.url, model="demo") as plans:
            await plans.run(steps, title=SECRET)
    tree = lines(sink.spans, above=CALLER[36:52])
    assert not llm.play.unexpected
    assert tree[0] == "plan"
    assert sorted(tree) == sorted([
        "plan",
        "  step agent agent",
        "    invoke_agent general-purpose",
        "      chat demo 1",
        "      execute_tool work call_1 1",
        "      chat demo 1",
        "  step plan child",
        "    plan",
        "      step work inside",
        "        execute_tool work inside 1",
    ])  # fmt: skip
    assert {span.trace_id for span in sink.spans} == {CALLER[3:35]}
    chat = sink.named("chat")[0]
    assert chat.attributes["gen_ai.request.model"] == "demo"
    assert chat.attributes["gen_ai.usage.input_tokens"] > 0
    assert chat.kind == 3  # a client
    assert SECRET.encode() not in b"".join(sink.bodies)


@pytest.mark.slow
async def test_a_caller_whose_trace_is_not_exported_gets_none(traced: Traced, sink: Collector) -> None:
    async with traced(CALLER[:-1] + "0") as plans:
        await plans.run([work("one")])
    assert sink.spans == []


@pytest.mark.slow
async def test_commands_and_requests_of_a_step_get_its_attempt_as_their_parent(
    traced: Traced, sink: Collector, workspace: Path
) -> None:
    steps = [{"id": "shell", "tool": "run_command", "args": {"command": "printf %s $TRACEPARENT > parent.txt"}}]
    async with traced(CALLER) as plans:
        view = await plans.run(steps, {"approveAll": True})
    assert view["status"] == "completed"
    (attempt,) = sink.named("execute_tool")
    assert (workspace / "parent.txt").read_text() == f"00-{attempt.trace_id}-{attempt.span_id}-01"


@pytest.mark.slow
async def test_a_collector_that_is_away_neither_fails_nor_holds_up_a_plan(
    traced: Traced, sink: Collector, workspace: Path
) -> None:
    sink.port = 9
    async with traced() as plans:
        view = await plans.run([work("one"), work("two", "one")])
    assert view["status"] == "completed"
    await until(lambda: len(plans.ledger) == 4, "the steps ran once")

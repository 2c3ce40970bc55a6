"""Plans whose quick steps run several in one activity: the same results as without, and what is left over."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.worker import Worker

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.audit.entries import Act
from plansurvive.features.audit.events import Reader
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, Started, View, statuses, step
from tests.workflows.conftest import Mode
from tests.workflows.quick_tools import CALLS

pytestmark = pytest.mark.uses("express")
ROOMY = {"seconds": 10, "steps": 256}
"""Where a test counts segments: on a busy machine a second is soon over."""
TOOLS = [LEDGER_TOOLS, str(Path(__file__).parent / "quick_tools.py")]


@pytest_asyncio.fixture
async def worker(temporal_client: Client, settings: Settings, mode: Mode) -> AsyncIterator[Worker]:
    """A worker with a quick tool."""
    async with build(temporal_client, settings, load_tools(TOOLS), indexed=True, cached=mode.cached) as running:
        yield running


def tick(name: str, *needs: str, **args: Any) -> dict[str, Any]:
    """A quick step; what is no argument of the tool is one of the step."""
    names = ("requiresApproval", "retry", "queue", "catch", "when")
    of_step: dict[str, Any] = {each: args.pop(each) for each in names if each in args}
    return {"id": name, "tool": "tick", "args": {"name": name, **args}, "dependsOn": list(needs), **of_step}


def chain(length: int, **args: Any) -> list[dict[str, Any]]:
    return [tick(f"s{index}", *([f"s{index - 1}"] if index else []), **args) for index in range(length)]


def calls(plans: Plans) -> Counter[str]:
    path = plans.workspace / CALLS
    return Counter(path.read_text().split() if path.exists() else [])


async def activities(started: Started) -> list[str]:
    """The activities of a plan, in order, without those around its steps."""
    return [each.activity_type.name for each in (await started.scheduled()).values()]


def noted(view: View) -> list[str]:
    return [each["code"] for each in view["log"] if each.get("code")]


async def test_a_chain_is_one_activity_with_six_events(plans: Plans) -> None:
    started = await plans.start(chain(30), express=ROOMY)
    view = await started.ended()
    assert (view["status"], noted(view)) == ("completed", [])
    assert await activities(started) == ["segment"]
    assert calls(plans) == Counter(f"s{index}" for index in range(30))
    plain = await plans.start(chain(1), express=False)
    await plain.ended()
    assert len(await started.events()) <= len(await plain.events())
    assert step(view, "s7")["result"]["value"] == "s7"


async def test_each_step_is_shown_as_ever_with_a_mark(plans: Plans) -> None:
    view = await plans.run(chain(3), express=True)
    found = step(view, "s1")["result"]
    assert (found["attempt"], found["ok"], found["express"]) == (1, True, {"segment": 1})
    assert found["duration"] > 0


async def test_the_audit_record_has_each_call_as_of_activities(plans: Plans, temporal_client: Client) -> None:
    async def calls_of(express: Any) -> list[tuple[str, ...]]:
        started = await plans.start([*chain(3), tick("x", fails=9, retryable=False)], express=express)
        await started.ended()
        reader, found = Reader(temporal_client, started.handle.id), list[Act]()
        for history in await started.histories():
            reader.of_next_run(history.run_id)
            found += [act for event in history.events for act in await reader.acts(event)]
        told = [act for act in found if act.tool == "tick"]
        assert all(
            first.time <= last.time for first, last in itertools.pairwise(act for act in told if act.step_id == "s1")
        )
        return sorted((act.step_id, act.action, act.args, act.outcome, act.code, str(act.attempt)) for act in told)

    assert await calls_of(ROOMY) == await calls_of(False)


async def test_each_step_has_times_of_its_own(plans: Plans) -> None:
    view = await plans.run(chain(3, seconds=0.1), express=ROOMY)
    ends = [datetime.fromisoformat(step(view, name)["result"]["timestamp"]) for name in ("s0", "s1", "s2")]
    assert all((last - first).total_seconds() >= 0.1 for first, last in itertools.pairwise(ends))


async def test_a_block_asks_for_itself_alone(plans: Plans) -> None:
    started = await plans.start([tick("a"), {"id": "b", "steps": chain(5), "express": ROOMY}, tick("c", "b")])
    assert (await started.ended())["status"] == "completed"
    assert await activities(started) == ["tick", "segment", "tick"]


async def test_values_go_from_step_to_step(plans: Plans) -> None:
    steps = [tick("a", value=[1, 2]), tick("b", value="$a"), tick("c", value="{{b[1]}}!")]
    view = await plans.run(steps, express=True)
    assert step(view, "c")["result"]["value"] == "2!"


async def test_a_loop_of_many_items_is_a_few_segments(plans: Plans) -> None:
    loop = tick("s", value="{{item}}") | {"forEach": {"items": list(range(600))}}
    started = await plans.start([{**loop, "args": {"name": "x{{item}}", "value": "{{item}}"}}], express=True)
    view = await started.ended()
    assert (view["status"], noted(view)) == ("completed", [])
    assert step(view, "s")["result"]["value"] == [str(index) for index in range(600)]
    assert set(await activities(started)) == {"segment"}
    assert all(times == 1 for times in calls(plans).values())


@pytest.mark.slow
async def test_a_loop_of_10000_items_carries_little(plans: Plans) -> None:
    loop = {"id": "s", "tool": "list_directory", "args": {"path": "."}, "forEach": {"items": list(range(10_000))}}
    started = await plans.start([loop], express=True)
    view = await started.ended()
    assert (view["status"], noted(view), view["counts"]["completed"]) == ("completed", [], 10_001)
    scheduled = [each for each in (await started.scheduled()).values() if each.activity_type.name == "segment"]
    sizes = [sum(payload.ByteSize() for payload in each.input.payloads) for each in scheduled]
    print(len(sizes), "segments,", len(await started.events()), "events,", max(sizes), sum(sizes), "bytes")
    assert (len(sizes) >= 10_000 // 256, max(sizes) < 40_000) == (True, True)


async def test_a_failed_attempt_is_followed_by_one_in_an_activity(plans: Plans) -> None:
    steps = [tick("a"), tick("b", "a", fails=1, retry={"attempts": 3, "delay": 0.01}), tick("c", "b")]
    started = await plans.start(steps, express=True)
    view = await started.ended()
    assert (view["status"], await activities(started)) == ("completed", ["segment", "tick", "segment"])
    assert (step(view, "b")["result"]["attempt"], calls(plans)["b"]) == (2, 2)


async def test_attempts_are_counted_together(plans: Plans) -> None:
    steps = [tick("a", fails=9, retry={"attempts": 2, "delay": 0.01}), tick("b")]
    view = await plans.run(steps, express=True)
    assert (calls(plans)["a"], step(view, "a")["result"]["attempt"], statuses(view)["b"]) == (2, 2, "completed")
    assert step(view, "a")["result"]["code"] == "BUSY"


async def test_a_final_failure_is_settled_and_caught(plans: Plans) -> None:
    caught = [{"steps": [tick("mend", value="mended")]}]
    steps = [tick("a", fails=9, retryable=False, catch=caught), tick("b", value="$a")]
    view = await plans.run(steps, express=True)
    assert (view["status"], calls(plans)["a"]) == ("completed", 1)


async def test_a_step_that_asks_is_left_and_comes_into_a_segment_once_approved(plans: Plans) -> None:
    started = await plans.start([tick("a"), tick("b", "a", requiresApproval=True), tick("c", "b")], express=ROOMY)
    await started.until_asked("b")
    assert calls(plans) == Counter(["a"])
    await started.approve("b")
    assert (await started.ended())["status"] == "completed"
    assert await activities(started) == ["segment", "segment"]


async def test_other_steps_run_beside_as_ever(plans: Plans) -> None:
    work = {"id": "w", "tool": "work", "args": {"name": "w"}, "dependsOn": ["s4"]}
    started = await plans.start([*chain(5), work, tick("last", "w")], express=ROOMY)
    assert (await started.ended())["status"] == "completed"
    assert await activities(started) == ["segment", "work", "segment"]


async def test_a_pause_counts_once_the_segment_has_ended(plans: Plans) -> None:
    started = await plans.start(chain(300, seconds=0.02), express=True)
    await started.until(lambda _: calls(plans), "a step has run")
    await started.signal("pause", {"by": "ann"})
    view = await started.until(lambda view: view["status"] == "paused", "it is paused")
    done = [name for name, status in statuses(view).items() if status == "completed"]
    assert 0 < len(done) < 300
    assert calls(plans) == Counter(done)
    await started.signal("unpause", {"by": "ann"})
    view = await started.ended()
    assert (view["status"], noted(view), len(calls(plans))) == ("completed", [], 300)
    assert set(calls(plans).values()) == {1}


async def test_a_cancellation_keeps_what_has_run(plans: Plans) -> None:
    started = await plans.start(chain(300, seconds=0.02), express=True)
    await started.until(lambda _: calls(plans), "a step has run")
    await started.handle.cancel()
    view = await started.ended()
    done = [name for name, status in statuses(view).items() if status == "completed"]
    assert (view["status"], calls(plans)) == ("cancelled", Counter(done))


async def test_an_edit_counts_once_the_segment_has_ended(plans: Plans) -> None:
    started = await plans.start(chain(300, seconds=0.02), express=True)
    await started.until(lambda _: calls(plans), "a step has run")

    def edit(name: str) -> dict[str, Any]:
        return {"edits": [{"op": "set", "stepId": name, "path": "args.value", "value": "edited"}]}

    late = asyncio.create_task(started.handle.execute_update("edit", edit("s299")))
    with pytest.raises(WorkflowUpdateFailedError):
        await started.handle.execute_update("edit", edit("s0"))
    await late
    view = await started.ended()
    assert (step(view, "s299")["result"]["value"], noted(view)) == ("edited", [])


async def test_an_unusable_journal_makes_each_step_an_activity(plans: Plans, settings: Settings) -> None:
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    (settings.state_dir / "express").write_text("in the way")
    started = await plans.start(chain(3), express=ROOMY)
    view = await started.ended()
    assert (view["status"], noted(view)) == ("completed", ["EXPRESS_UNAVAILABLE"])
    assert await activities(started) == ["segment", "tick", "tick", "tick"]

"""Plans whose quick steps run several in one activity: the same results as without, and what is left over."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
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
from plansurvive.features.express.journal import FOLDER
from plansurvive.features.express.model import segment_id
from plansurvive.features.files.verbs import file_changes, undo
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import Plans, Started, View, statuses, step
from tests.nightly import only_nightly
from tests.workflows.conftest import Mode
from tests.workflows.quick_tools import CALLS, TIMES

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
    [segment] = [each for each in (await started.scheduled()).values() if each.activity_type.name == "segment"]
    # A plan whose worker has died ten times in a segment waits a second for the next attempt, not a minute and a half.
    assert segment.retry_policy.backoff_coefficient == 1.0


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


async def test_a_loop_of_many_items_is_a_few_segments(plans: Plans, settings: Settings) -> None:
    loop = tick("s", value="{{item}}") | {"forEach": {"items": list(range(600))}}
    started = await plans.start([{**loop, "args": {"name": "x{{item}}", "value": "{{item}}"}}], express=True)
    view = await started.ended()
    assert (view["status"], noted(view)) == ("completed", [])
    assert step(view, "s")["result"]["value"] == [str(index) for index in range(600)]
    segments = await activities(started)
    assert set(segments) == {"segment"}
    alone = await plans.start(chain(1), express=False)
    await alone.ended()
    # Of the one activity there are six: scheduled, started, completed, and a workflow task that takes it.
    assert len(await started.events()) <= len(await alone.events()) + 6 * (len(segments) - 1)
    assert all(times == 1 for times in calls(plans).values())
    with closing(sqlite3.connect(settings.state_dir / FOLDER / "journal.db")) as journal:
        kept = journal.execute("SELECT activity FROM segments").fetchall()
    assert kept == [(segment_id(len(segments)),)], "the outcomes of the others are in the history"


async def test_what_ended_at_once_is_settled_before_anything_else_begins(plans: Plans) -> None:
    items = tick("x{{item}}") | {"id": "s", "forEach": {"items": list(range(40))}}
    started = await plans.start([items], express=ROOMY, maxParallel=8)
    await started.ended()
    moves = [each for each in await started.handle.query("events", {"since": 0}) if each["stepId"].startswith("s[")]
    # As in the worker: a beginning between two ends with one time would be one that the worker did not see so.
    ends = itertools.groupby(moves, lambda each: each["time"] if each["status"] == "completed" else "")
    times = [time for time, _ in ends if time]
    assert (len(times), len(moves)) == (len(set(times)), 120)
    assert len(times) < 20, "eight are made side by side"


def schedules() -> int:
    """How many there are, those that wait for the garbage collection included."""
    return sum(type(each) is Schedule and bool(vars(each)) for each in gc.get_objects())


@pytest.mark.modes("plain")
async def test_segments_leave_nothing_to_the_garbage_collection(plans: Plans) -> None:
    gc.collect()
    gc.disable()
    try:
        before = schedules()
        started = await plans.start([*chain(20), tick("x", "s19", requiresApproval=True)], express=ROOMY | {"steps": 5})
        await started.until_asked("x")
        assert (await activities(started), schedules() - before) == (["segment"] * 4, 1), "the workflow has one"
    finally:
        gc.enable()


@pytest.mark.slow
async def test_a_loop_of_10000_items_carries_little(plans: Plans) -> None:
    loop = {"id": "s", "tool": "list_directory", "args": {"path": "."}, "forEach": {"items": list(range(10_000))}}
    started = await plans.start([loop], express=True)
    view = await started.ended()
    assert (view["status"], noted(view), step(view, "s")["inside"]["counts"]) == (
        "completed",
        [],
        {"completed": 10_000},
    )
    scheduled = [each for each in (await started.scheduled()).values() if each.activity_type.name == "segment"]
    sizes = [sum(payload.ByteSize() for payload in each.input.payloads) for each in scheduled]
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
    started = await plans.start(chain(150, seconds=0.02), express=True)
    await started.until(lambda _: calls(plans), "a step has run")
    await started.signal("pause", {"by": "ann"})
    view = await started.until(lambda view: view["status"] == "paused", "it is paused")
    done = [name for name, status in statuses(view).items() if status == "completed"]
    assert 0 < len(done) < 150
    assert calls(plans) == Counter(done)
    await started.signal("unpause", {"by": "ann"})
    view = await started.ended()
    assert (view["status"], noted(view), len(calls(plans))) == ("completed", [], 150)
    assert set(calls(plans).values()) == {1}


async def test_a_cancellation_keeps_what_has_run(plans: Plans) -> None:
    started = await plans.start(chain(300, seconds=0.02), express=True)
    await started.until(lambda _: calls(plans), "a step has run")
    await started.handle.cancel()
    view = await started.ended()
    done = [name for name, status in statuses(view).items() if status == "completed"]
    assert (view["status"], calls(plans)) == ("cancelled", Counter(done))


@pytest.mark.slow
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


SECONDS = 1.5
"""No step begins later than so long after a message."""
TRIES = [1, *(only_nightly(number) for number in range(2, 21))]


def late(plans: Plans, sent: float) -> float:
    """How long after that time the last step began."""
    return max(float(each) for each in (plans.workspace / TIMES).read_text().split()) - sent


async def under_way(plans: Plans, number: int) -> Started:
    """A chain with steps of 10 ms, some of which have run."""
    started = await plans.start(chain(600, seconds=0.01), express=True)
    await started.until(lambda _: len(calls(plans)) >= 7 * number, "steps have run")
    return started


@pytest.mark.slow
@pytest.mark.modes("plain")
@pytest.mark.parametrize("number", TRIES)
@pytest.mark.parametrize("what", ["pause", "cancel"])
async def test_no_step_begins_long_after_a_pause_or_a_cancellation(plans: Plans, what: str, number: int) -> None:
    started = await under_way(plans, number)
    sent = time.time()
    if what == "pause":
        await started.signal("pause", {"by": "ann"})
        await started.until(lambda view: view["status"] == "paused", "it is paused")
        await started.handle.cancel()
    else:
        await started.handle.cancel()
    await started.ended()
    assert late(plans, sent) <= SECONDS


async def began_before_an_edit(client: Client, started: Started) -> float:
    """When the last step began that knew nothing of it, in seconds since 1970."""
    began = 0.0
    for event in await started.events():
        if event.HasField("workflow_execution_update_completed_event_attributes"):
            break
        if event.HasField("activity_task_completed_event_attributes"):
            [data] = await client.data_converter.decode(event.activity_task_completed_event_attributes.result.payloads)
            calls = data.get("calls", ()) if isinstance(data, dict) else ()
            began = max([began, *(datetime.fromisoformat(call["began"]).timestamp() for call in calls)])
    return began


@pytest.mark.slow
@pytest.mark.modes("plain")
@pytest.mark.parametrize("number", TRIES)
@pytest.mark.parametrize("what", ["args.value", "requiresApproval"])
async def test_an_edit_of_a_step_further_on_counts_soon(
    plans: Plans, temporal_client: Client, what: str, number: int
) -> None:
    started = await under_way(plans, number)
    sent = time.time()
    edit = {"op": "set", "stepId": "s590", "path": what, "value": True}
    await started.handle.execute_update("edit", {"edits": [edit]})
    assert await began_before_an_edit(temporal_client, started) - sent <= SECONDS
    if what == "requiresApproval":
        await started.until_asked("s590")
        assert "s590" not in calls(plans)
        await started.approve("s590", version=2)
    view = await started.ended()
    assert (view["status"], noted(view), set(calls(plans).values())) == ("completed", [], {1})
    assert step(view, "s590")["result"]["value"] == (True if what == "args.value" else "s590")


async def test_results_of_earlier_runs_are_taken_in_a_segment(plans: Plans) -> None:
    (plans.workspace / "a.txt").write_text("text")
    steps = [{"id": "r", "tool": "read_file", "args": {"path": "a.txt"}}, tick("t", value="{{r.content}}")]
    first = await plans.start(steps, express=ROOMY, cache=True)
    value = step(await first.ended(), "r")["result"]["value"]
    again = await plans.start(steps, express=ROOMY, cache=True)
    view = await again.ended()
    assert await activities(again) == ["segment"]
    assert step(view, "r")["result"]["takenFrom"] == f"{first.id.removeprefix('plan-')}/r"
    assert step(view, "r")["result"]["value"] == value


async def test_files_of_a_segment_are_recorded_and_rolled_back(plans: Plans) -> None:
    undo = {"tool": "delete_file", "args": {"path": "new.txt"}, "requiresApproval": False}
    write = {"id": "w", "tool": "write_file", "args": {"path": "new.txt", "content": "new"}, "undo": undo}
    edit = {"id": "e", "tool": "edit_file", "args": {"path": "new.txt", "oldText": "new", "newText": "newer"}}
    steps = [write, edit | {"dependsOn": ["w"]}, tick("x", "e", fails=9, retryable=False) | {"critical": True}]
    started = await plans.start(steps, express=ROOMY, rollback=True)
    view = await started.ended()
    assert (view["status"], statuses(view)["w.undo"]) == ("failed", "completed")
    assert (view["step_files"]["0"], view["step_files"]["1"]) == (["new.txt"], ["new.txt"])
    assert not (plans.workspace / "new.txt").exists()
    assert (await activities(started))[0] == "segment"


async def test_what_a_segment_has_changed_is_listed_and_undone_as_ever(plans: Plans, temporal_client: Client) -> None:
    async def changed(express: Any) -> list[tuple[str, str, str, str]]:
        write = {"id": "w", "tool": "write_file", "args": {"path": "{{item}}.txt", "content": "old"}}
        edit = {"id": "e", "tool": "edit_file", "args": {"path": "{{item}}.txt", "oldText": "old", "newText": "new"}}
        loop = {"id": "l", "forEach": {"items": ["a", "b"]}, "steps": [write, edit | {"dependsOn": ["w"]}]}
        started = await plans.start([loop], express=express)
        assert (await started.ended())["status"] == "completed"
        report = await file_changes(temporal_client, started.id)
        item = await undo(temporal_client, started.id, "l[0].e")
        assert ((plans.workspace / "a.txt").read_text(), item.refused) == ("old", [])
        await undo(temporal_client, started.id)
        assert not [*plans.workspace.glob("*.txt")]
        rows = [(call.step_id, call.tool, each.path, each.diff) for call in report.calls for each in call.changes]
        return sorted(rows)

    assert await changed(ROOMY) == await changed(False)


async def test_an_unusable_journal_makes_each_step_an_activity(plans: Plans, settings: Settings) -> None:
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    (settings.state_dir / "express").write_text("in the way")
    started = await plans.start(chain(3), express=ROOMY)
    view = await started.ended()
    assert (view["status"], noted(view)) == ("completed", ["EXPRESS_UNAVAILABLE"])
    assert await activities(started) == ["segment", "tick", "tick", "tick"]

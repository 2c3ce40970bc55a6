"""Plans on a real server: what starts when, what a step is given, how a plan ends."""

from __future__ import annotations

import json
import os

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.kit.driving import WAITS, Plans, statuses, step, work
from tests.kit.waiting import until

pytestmark = [pytest.mark.every_mode, pytest.mark.oldest_server]


@pytest.mark.modes("plain", "uncached")
async def test_a_chain_of_quick_steps_ends_long_before_the_slow_step_beside_it(plans: Plans) -> None:
    steps = [work("slow", args=WAITS), work("a"), work("b", "a"), work("c", "b"), work("d", "slow", "c")]
    plan = await plans.start(steps)
    await plan.until_status("c", "completed")
    plans.go()
    view = await plan.ended()
    assert view["status"] == "completed"
    ends = [name for what, name, _ in plans.ledger if what == "end"]
    assert ends == ["a", "b", "c", "slow", "d"]
    assert step(view, "c")["endedAt"] < step(view, "slow")["endedAt"]


async def test_independent_steps_run_at_the_same_time_up_to_the_limit(plans: Plans) -> None:
    plan = await plans.start([work(f"s{number}", args=WAITS) for number in range(9)], maxParallel=3)
    await until(lambda: len(plans.ledger) == 3, "as many as may have begun")
    plans.go()
    assert set(statuses(await plan.ended()).values()) == {"completed"}
    assert _most_at_once(plans.ledger) == 3


async def test_the_clients_limit_comes_before_the_plans(plans: Plans) -> None:
    await plans.run([work(f"s{number}", seconds=0.05) for number in range(4)], {"maxParallel": 1}, maxParallel=4)
    assert _most_at_once(plans.ledger) == 1


@pytest.mark.crosses_runs
async def test_a_step_waits_for_all_it_depends_on_and_all_it_refers_to(plans: Plans) -> None:
    steps = [
        work("last", "b", args={"value": "$c"}),
        work("a", seconds=0.1),
        work("b", "a"),
        work("c", "a", args=WAITS),
    ]
    plan = await plans.start(steps)
    await plan.until_status("b", "completed")
    plans.go()
    view = await plan.ended()
    ends = [name for what, name, _ in plans.ledger if what == "end"]
    assert ends == ["a", "b", "c", "last"]
    assert step(view, "last")["result"]["value"] == "c"


@pytest.mark.crosses_runs
async def test_references_and_templates_are_filled_in(plans: Plans) -> None:
    rows = {"rows": [{"name": "ann", "n": 1}, {"name": "bob", "n": 2}]}
    steps = [
        work("source", args={"value": rows}),
        work("whole", args={"value": "$source"}),
        work("part", args={"value": "$source.rows[1].name"}),
        work("text", args={"value": "{{source.rows[0].name}} has {{source.rows[0].n}} of {{inputs.total}}"}),
        work("nested", args={"value": {"deep": ["$source.rows[*].n", "$$5 and $5"]}}),
    ]
    view = await plans.run(steps, {"inputs": {"total": 7}}, inputs={"total": {"type": "integer"}})
    assert step(view, "whole")["result"]["value"] == rows
    assert step(view, "part")["result"]["value"] == "bob"
    assert step(view, "text")["result"]["value"] == "ann has 1 of 7"
    assert step(view, "nested")["result"]["value"] == {"deep": [[1, 2], "$5 and $5"]}


async def test_a_reference_to_a_part_that_is_not_there_fails_the_step_alone(plans: Plans) -> None:
    view = await plans.run([work("a", args={"value": {"x": 1}}), work("b", args={"value": "$a.y"}), work("c", "a")])
    assert statuses(view) == {"a": "completed", "b": "failed", "c": "completed"}
    assert step(view, "b")["result"]["code"] == "BAD_REFERENCE"


@pytest.mark.crosses_runs
async def test_a_condition_that_does_not_hold_skips_the_step_and_opens_what_follows(plans: Plans) -> None:
    steps = [
        work("count", args={"value": 3}),
        work("many", when="count > `5`"),
        work("few", when="count < `5`"),
        work("after", "many", "few"),
        work("uses", args={"value": "$many"}),
    ]
    view = await plans.run(steps)
    assert statuses(view) == {
        "count": "completed", "many": "skipped", "few": "completed", "after": "completed", "uses": "blocked"
    }  # fmt: skip
    assert view["status"] == "partial"
    assert "condition not met" in step(view, "many")["reason"]


@pytest.mark.crosses_runs
async def test_a_large_value_goes_from_step_to_step_without_going_through_history(plans: Plans) -> None:
    content = "".join(f"{number} {os.urandom(20).hex()} äöü\n" for number in range(21_000))
    (plans.workspace / "big.txt").write_text(content)
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "big.txt"}},
        {"id": "write", "tool": "write_file", "args": {"path": "out/copy.txt", "content": "$read"}},
        {"id": "quote", "tool": "write_file", "args": {"path": "quoted.txt", "content": "<{{read}}>"}},
    ]
    plan = await plans.start(steps)
    view = await plan.ended()
    assert view["status"] == "completed", view["steps"]
    assert len(content.encode()) > 1_000_000
    assert (plans.workspace / "out/copy.txt").read_text() == content
    assert (plans.workspace / "quoted.txt").read_text() == f"<{content}>"
    assert step(view, "read")["result"]["large"]["bytes"] == len(json.dumps(content, ensure_ascii=False).encode())
    assert max(event.ByteSize() for event in await plan.events()) < 40_000


async def test_a_value_too_large_for_a_condition_fails_the_step_that_asks(plans: Plans) -> None:
    (plans.workspace / "big.txt").write_text("x" * 50_000)
    steps = [{"id": "read", "tool": "read_file", "args": {"path": "big.txt"}}, work("maybe", when="read == 'x'")]
    view = await plans.run(steps)
    assert step(view, "maybe")["result"]["code"] == "BAD_EXPRESSION"


async def test_defaults_hold_for_steps_that_say_nothing_else(plans: Plans) -> None:
    steps = [work("a"), work("b", timeout=7.0, retry={"attempts": 5, "delay": 3.0, "factor": 1.0})]
    plan = await plans.start(steps, defaults={"timeout": 9.0, "retry": {"attempts": 2, "delay": 0.5, "factor": 4.0}})
    await plan.ended()
    scheduled = await plan.scheduled()
    assert scheduled["a"].retry_policy.initial_interval.ToTimedelta().total_seconds() == 0.5
    assert scheduled["a"].retry_policy.backoff_coefficient == 4.0
    assert scheduled["b"].retry_policy.initial_interval.ToTimedelta().total_seconds() == 3.0
    assert scheduled["a"].start_to_close_timeout.seconds - scheduled["b"].start_to_close_timeout.seconds == 2


@pytest.mark.crosses_runs
async def test_a_failed_step_blocks_what_depends_on_it_and_nothing_else(plans: Plans) -> None:
    refuse = {"id": "bad", "tool": "refuse", "args": {"code": "CONFLICT"}}
    view = await plans.run([refuse, work("after", "bad"), work("later", "after"), work("a"), work("b", "a")])
    assert statuses(view) == {
        "bad": "failed", "after": "blocked", "later": "blocked", "a": "completed", "b": "completed"
    }  # fmt: skip
    assert view["status"] == "partial"
    assert step(view, "after")["blockedBy"] == ["bad"]
    assert step(view, "later")["blockedBy"] == ["after"]


@pytest.mark.crosses_runs
async def test_a_critical_step_that_fails_stops_the_plan_and_lets_running_steps_end(plans: Plans) -> None:
    refuse = {"id": "bad", "tool": "refuse", "args": {"code": "CONFLICT"}, "critical": True, "dependsOn": ["first"]}
    steps = [work("first"), refuse, work("slow", "first", args=WAITS), work("after", "slow"), work("other", "after")]
    plan = await plans.start(steps)
    await plan.until_status("bad", "failed")
    plans.go()
    view = await plan.ended()
    assert statuses(view) == {
        "first": "completed", "bad": "failed", "slow": "completed", "after": "blocked", "other": "blocked"
    }  # fmt: skip
    assert view["status"] == "failed"
    assert view["stopped"] == "critical step 'bad' failed"
    with pytest.raises(WorkflowFailureError) as raised:
        await plan.handle.result()
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "PLAN_FAILED"
    assert cause.details[0]["failed"] == [{"stepId": "bad", "code": "CONFLICT", "error": "refused with CONFLICT"}]


@pytest.mark.crosses_runs
async def test_the_result_of_the_workflow_is_the_summary(plans: Plans) -> None:
    write = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
    plan = await plans.start([write, work("b", "write")], title="Two steps")
    summary = await plan.handle.result()
    assert summary["status"] == "completed"
    assert summary["counts"] == {"total": 2, "completed": 2}
    assert summary["filesWritten"] == ["a.txt"]
    assert summary["title"] == "Two steps"
    assert summary == await plan.handle.query("summary")
    assert (await plan.handle.describe()).status is WorkflowExecutionStatus.COMPLETED


async def test_the_summary_is_kept_as_a_file_for_people(plans: Plans, state_dir: os.PathLike[str]) -> None:
    plan = await plans.start([work("a")], title="Kept")
    await plan.ended()
    text = (plans.workspace.parent / "state" / "runs" / plan.id.removeprefix("plan-") / "SUMMARY.md").read_text()
    assert text.startswith("# Kept\n")
    assert "completed" in text


@pytest.mark.crosses_runs
async def test_events_number_every_change_once_and_in_order(plans: Plans) -> None:
    plan = await plans.start([work("a"), work("b", "a")])
    await plan.ended()
    events = await plan.handle.query("events", {"since": 0})
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    assert [event["status"] for event in events if event["stepId"] == "b"] == [
        "blocked", "ready", "running", "completed"
    ]  # fmt: skip
    middle = numbers[len(numbers) // 2]
    assert await plan.handle.query("events", {"since": middle}) == [each for each in events if each["seq"] > middle]


async def test_sleep_is_a_timer_and_no_activity(plans: Plans) -> None:
    nap = {"id": "nap", "tool": "sleep", "args": {"seconds": 0.5}, "dependsOn": ["a"]}
    plan = await plans.start([work("a"), nap, work("b", "nap")])
    view = await plan.ended()
    assert view["status"] == "completed"
    assert step(view, "nap")["endedAt"] > step(view, "nap")["startedAt"]
    assert set(await plan.scheduled()) == {"a", "b"}


def _most_at_once(ledger: list[list[str]]) -> int:
    running = most = 0
    for what, _, _ in ledger:
        running += 1 if what == "start" else -1
        most = max(most, running)
    return most

"""A loop over ten thousand items on a real server: within the limits of a history, and always answering."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from temporalio.client import WorkflowHistory

from tests.kit.driving import Plans, step, work

ITEMS = 10_000
MOST_EVENTS = 12_000
"""Events in one run: the server suggests continue-as-new after 4,096 events; it fails a workflow after 51,200."""

MOST_BYTES = 4 * 2**20
"""Bytes in one run: the server warns at 10 MiB."""


def history_bytes(history: WorkflowHistory) -> int:
    """The size of a run's history, as the server counts it."""
    return sum(event.ByteSize() for event in history.events)


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_ten_thousand_items_run_in_runs_of_bounded_length_and_the_plan_answers_meanwhile(plans: Plans) -> None:
    loop = {"id": "each", "forEach": {"items": "list"}, "tool": "read_json", "args": {"path": "one.json"}}
    (plans.workspace / "one.json").write_text("1")
    listed = {"id": "list", "tool": "read_json", "args": {"path": "list.json"}}
    (plans.workspace / "list.json").write_text(str(list(range(ITEMS))))
    longer = replace(plans, ceiling=timedelta(minutes=15))
    plan = await longer.start([listed, loop, work("end", "each")], {"maxParallel": 64})
    ended = asyncio.create_task(plan.ended())
    answers = 0
    while not ended.done():
        view = await plan.view()
        answers += len(view["steps"]) == 3
        await asyncio.wait([ended], timeout=1)
    view = await ended
    assert view["status"] == "completed"
    assert step(view, "each")["inside"]["counts"] == {"completed": ITEMS}
    histories = await plan.histories()
    assert len(histories) > 1
    assert max(len(history.events) for history in histories) < MOST_EVENTS
    assert max(history_bytes(history) for history in histories) < MOST_BYTES
    assert answers > len(histories), "the plan answers all the time"


@pytest.mark.slow
@pytest.mark.modes("plain")
async def test_more_items_than_one_plan_may_have_run_in_child_plans(plans: Plans) -> None:
    many = 20_100
    loop = {"id": "each", "tool": "read_json", "args": {"path": "one.json"}}
    loop |= {"forEach": {"items": "list", "mode": "plans", "batch": 500, "maxParallel": 64}}
    (plans.workspace / "one.json").write_text("1")
    (plans.workspace / "list.json").write_text(str(list(range(many))))
    listed = {"id": "list", "tool": "read_json", "args": {"path": "list.json"}}
    end = {"id": "end", "tool": "write_file", "args": {"path": "end.json", "content": "{{each}}"}}
    plan = await replace(plans, ceiling=timedelta(minutes=20)).start([listed, loop, end])
    view = await plan.ended()
    assert (view["status"], step(view, "each")["inside"]["counts"]) == ("completed", {"completed": 41})
    assert json.loads((plans.workspace / "end.json").read_text()) == [1] * many
    assert max(len(history.events) for history in await plan.histories()) < MOST_EVENTS

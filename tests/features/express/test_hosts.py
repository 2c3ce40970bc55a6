"""Segments of plans whose files are at a host: pure steps on its queue, and at the next host if it is lost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.features.hosts.conftest import machines as machines
from tests.features.hosts.conftest import plans as plans
from tests.features.hosts.machines import Machines
from tests.kit.driving import Plans, Started, View, statuses, step
from tests.replay.hosts import segment_late
from tests.workflows.quick_tools import CALLS

pytestmark = [pytest.mark.uses("hosts"), pytest.mark.slow]


def write(name: str, text: str, *needs: str) -> dict[str, Any]:
    return {"id": name, "tool": "write_file", "args": {"path": f"{name}.txt", "content": text}, "dependsOn": [*needs]}


def read(name: str, path: str, *needs: str) -> dict[str, Any]:
    return {"id": name, "tool": "read_file", "args": {"path": path}, "dependsOn": [*needs]}


async def calls(plan: Started) -> list[tuple[str, str]]:
    """The activities of steps and segments, each with its queue, in order."""
    found = [(each.activity_type.name, each.task_queue.name) for each in (await plan.scheduled()).values()]
    return [each for each in found if each[0] in ("write_file", "read_file", "segment")]


def noted(view: View) -> list[str]:
    return [each["code"] for each in view["log"] if each.get("code")]


async def test_only_what_changes_nothing_is_in_segments_and_they_are_at_the_host(
    machines: Machines, plans: Plans
) -> None:
    steps = [write("a", "one\n"), *(read(f"r{i}", "a.txt", f"r{i - 1}" if i else "a") for i in range(4)),
             write("b", "{{r3}}", "r3"), read("last", "b.txt", "b")]  # fmt: skip
    async with machines.up("first"):
        plan = await plans.start(steps, express=True)
        view = await plan.ended()
    assert (set(statuses(view).values()), noted(view)) == ({"completed"}, [])
    queue = f"{plans.queue}@first"
    kinds = ["write_file", "segment", "write_file", "segment"]
    assert await calls(plan) == [(each, queue) for each in kinds]
    assert step(view, "last")["result"]["value"] == "one\n"


@pytest.mark.sampled
async def test_a_segment_whose_host_is_lost_runs_where_the_files_are(machines: Machines, plans: Plans) -> None:
    go = {"id": "go", "tool": "wait_for", "args": {"event": "go"}, "dependsOn": ["a"]}
    steps = [write("a", "one\n"), go, read("r1", "a.txt", "go"), read("r2", "a.txt", "r1"), write("b", "two\n", "r2")]
    async with machines.up("first"):
        plan = await plans.start(steps, express=True)
        await plan.until_status("a", "completed")
    async with machines.up("second"):
        await plan.signal("event", {"name": "go", "data": {}})
        view = await plan.ended()
    assert (set(statuses(view).values()), noted(view)) == ({"completed"}, [])
    assert [kind for kind, queue in await calls(plan) if queue.endswith("@second")] == ["segment", "write_file"]
    assert [step(view, name)["result"]["value"] for name in ("r1", "r2")] == ["one\n", "one\n"]
    assert step(view, "r2")["result"]["express"] == {"segment": 1}
    assert machines.files("second") == {"a.txt": "one\n", "b.txt": "two\n"}


async def test_what_a_segment_finds_at_a_host_that_the_plan_has_left_is_found_again(plans: Plans) -> None:
    started = await segment_late(plans)
    assert (await started.handle.result())["status"] == "completed"
    calls = [[*(plans.workspace / host / "workspace").glob(f"*/{CALLS}")] for host in ("first", "second")]
    assert [file.read_text().split().count("t8") for [file] in calls] == [1, 1]

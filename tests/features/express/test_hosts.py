"""Segments of plans whose files are at a host: pure steps on its queue, and at the next host if it is lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.features.hosts.conftest import machines as machines
from tests.features.hosts.conftest import plans as plans
from tests.features.hosts.machines import Machines
from tests.kit.driving import GO, LEDGER, WAITS, Plans, Started, View, statuses, step, work
from tests.kit.waiting import until
from tests.workflows import quick_tools
from tests.workflows.quick_tools import CALLS

pytestmark = [pytest.mark.uses("hosts"), pytest.mark.slow, pytest.mark.sampled]


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


async def test_what_a_segment_finds_at_a_host_that_the_plan_has_left_is_found_again(
    machines: Machines, plans: Plans
) -> None:
    """A step beside it has waited for a place at the host, which answers no more."""
    machines.tools.append(str(Path(quick_tools.__file__)))
    go = {"id": "go", "tool": "wait_for", "args": {"event": "go"}, "dependsOn": ["a"]}
    chain = [tick(f"t{i}", f"t{i - 1}" if i else "go", seconds=1.0) for i in range(9)]
    again = tick("again", "go", fails=1) | {"retry": {"attempts": 3, "delay": 0.01}, "express": False}
    steps = [write("a", "one\n"), go, work("holds", "go", args=WAITS), again, *chain]
    async with machines.only_steps("first", 2):
        async with machines.up_without_steps("first"):
            plan = await plans.start(steps, express={"seconds": 10})
            await plan.until_status("a", "completed")
        async with machines.up("second"):
            await plan.signal("event", {"name": "go", "data": {}})
            for host in ("first", "second"):
                await until(partial(began, machines, host, "holds"), f"it is called at {host}")
                if host == "first":
                    await until(lambda: hosts(plan, 2), "another place is asked for")
                for path in (machines.folder / host / "workspace").iterdir():
                    (path / GO).touch()
            view = await plan.ended()
    assert (set(statuses(view).values()), noted(view)) == ({"completed"}, []), view["log"]
    assert [entry for entry in view["log"] if "have moved" in entry["text"]], view["log"]
    assert [machines.files(host)[CALLS].split().count("t8") for host in ("first", "second")] == [1, 1]


def tick(name: str, *needs: str, **args: Any) -> dict[str, Any]:
    return {"id": name, "tool": "tick", "args": {"name": name, **args}, "dependsOn": [*needs]}


def began(machines: Machines, host: str, name: str) -> bool:
    return f"start {name}" in machines.files(host).get(LEDGER, "")


async def hosts(plan: Started, count: int) -> bool:
    """Whether the plan has asked for so many places."""
    names = [event.activity_task_scheduled_event_attributes.activity_type.name for event in await plan.events()]
    return names.count("take_host") == count

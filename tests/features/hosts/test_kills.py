"""kill -9 of a host's worker, between steps and within one: the plan ends at the other host with the same files.

Each host is a process with a workspace and a state directory of its own; the values are in one place, as in a bucket.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.chaos.conftest import WorkerProcess
from tests.chaos.faults import command
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import GO, WAITS, Plans, Started, statuses, step, work
from tests.kit.waiting import until

pytestmark = pytest.mark.slow
FREE: dict[str, Any] = {"requiresApproval": False}


class Fleet:
    """Hosts as processes."""

    def __init__(self, folder: Path, environ: dict[str, str], client: Client, queue: str) -> None:
        self.folder, self.environ = folder, environ
        self.plans = Plans(client, queue, folder)
        self.hosts: dict[str, WorkerProcess] = {}

    def host(self, name: str, *, program: list[str] | None = None) -> WorkerProcess:
        """A host, not yet started."""
        own = self.folder / name
        for each in (own / "state", own / "workspace", self.folder / "values"):
            each.mkdir(parents=True, exist_ok=True)
        if not (own / "state" / "values").exists():
            (own / "state" / "values").symlink_to(self.folder / "values")
        more = {
            "PLANS_HOST": name, "PLANS_HOST_PATIENCE": "2", "PLANS_STATE_DIR": str(own / "state"),
            "PLANS_WORKSPACE": str(own / "workspace"), "PLANS_TOOLS": LEDGER_TOOLS,
        }  # fmt: skip
        program = program or [sys.executable, "worker.py"]
        self.hosts[name] = WorkerProcess(program, self.environ | more, self.folder / f"{name}.log")
        return self.hosts[name]

    def place(self, name: str) -> Path:
        """The newest plan's directory at a host."""
        return max((self.folder / name / "workspace").iterdir(), key=lambda path: path.stat().st_ctime_ns)

    def files(self, name: str) -> dict[str, str]:
        """What it holds."""
        root = self.place(name)
        return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture
def fleet(tmp_path: Path, environ: dict[str, str], temporal_client: Client, queue: str) -> Iterator[Fleet]:
    made = Fleet(tmp_path, environ, temporal_client, queue)
    yield made
    for host in made.hosts.values():
        host.kill()


def run(name: str, text: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "tool": "run_command", "args": {"command": text}, "dependsOn": [*needs], **FREE, **more}


def moves(view: dict[str, Any]) -> list[str]:
    return [entry["text"] for entry in view["log"] if "is lost" in entry["text"]]


async def test_a_host_killed_between_two_steps(fleet: Fleet) -> None:
    first, second = fleet.host("first"), fleet.host("second")
    await first.up()
    plan = await fleet.plans.start(
        [
            run("a", "mkdir d; echo one > d/a; chmod 700 d/a; ln -s d/a link"),
            run("gate", "cat link >> d/b", "a", requiresApproval=True),
        ]
    )
    await plan.until_asked("gate")
    assert fleet.files("first") == {"d/a": "one\n", "link": "one\n"}
    first.kill()
    await second.up()
    await plan.approve("gate")
    view = await plan.ended()
    assert statuses(view) == {"a": "completed", "gate": "completed"}
    assert len(moves(view)) == 1
    assert fleet.files("second") == {"d/a": "one\n", "d/b": "one\n", "link": "one\n"}
    assert (fleet.place("second") / "d/a").stat().st_mode & 0o777 == 0o700
    assert (fleet.place("second") / "link").is_symlink()


async def test_a_host_killed_within_a_step_whose_half_done_work_is_left_behind(fleet: Fleet) -> None:
    plan = await _killed_within(fleet)
    await _go(fleet, "second")
    view = await plan.ended()
    assert statuses(view) == {"a": "completed", "b": "completed", "c": "completed"}
    assert len(moves(view)) == 1
    assert fleet.files("second") == {
        "a": "one\n", "c": "one\n", GO: "", "ledger.txt": "start b 1\nend b 1\n",
    }, "what the first attempt wrote into the ledger stayed at the lost host"  # fmt: skip


async def test_a_host_killed_within_a_step_of_a_plan_in_a_plan(fleet: Fleet) -> None:
    """Three workflows work in the directory; each has done something, and each goes on."""
    first, second = fleet.host("first"), fleet.host("second")
    await first.up()
    deep = {"id": "deep", "tool": "plan", "args": {"steps": [run("d", "echo deep > d"), work("b", "d", args=WAITS)]}}
    inner = {"id": "inner", "tool": "plan", "args": {"steps": [run("i", "echo inner > i"), deep]}, "dependsOn": ["a"]}
    plan = await fleet.plans.start([run("a", "echo one > a"), inner, run("c", "cat a i d > c", "inner")])
    await until(lambda: {"d", "i", "ledger.txt"} <= {*_names(fleet, "first")}, "the step is in the middle of its work")
    first.kill()
    await second.up()
    await _go(fleet, "second")
    view = await plan.ended()
    assert statuses(view) == {"a": "completed", "inner": "completed", "c": "completed"}
    assert len(moves(view)) == 1
    found = fleet.files("second")
    assert (found["c"], found["ledger.txt"]) == ("one\ninner\ndeep\n", "start b 1\nend b 1\n")


async def test_a_call_that_must_not_be_repeated_is_in_doubt_when_its_host_is_lost(fleet: Fleet) -> None:
    plan = await _killed_within(fleet, repeatable=False)
    view = await plan.ended()
    assert statuses(view) == {"a": "completed", "b": "failed", "c": "blocked"}
    assert step(view, "b")["result"]["code"] == "OUTCOME_UNKNOWN"
    assert "host 'first' was lost" in step(view, "b")["result"]["error"]
    assert fleet.files("second") == {"a": "one\n"}, "it was not called again"


async def test_a_call_that_must_not_be_repeated_and_never_began_is_made_at_the_next_host(fleet: Fleet) -> None:
    first, second = fleet.host("first"), fleet.host("second")
    await first.up()
    plan = await fleet.plans.start([run("a", "echo one > a"), run("b", "cp a b", "a", repeatable=False,
                                                                  requiresApproval=True)])  # fmt: skip
    await plan.until_asked("b")
    first.kill()
    await second.up()
    await plan.approve("b")
    assert statuses(await plan.ended()) == {"a": "completed", "b": "completed"}
    assert fleet.files("second") == {"a": "one\n", "b": "one\n"}


@pytest.mark.parametrize("repeatable", [True, False])
async def test_a_host_that_is_back_in_time_keeps_its_plan(fleet: Fleet, repeatable: bool) -> None:
    first = fleet.host("first")
    first.environ["PLANS_HOST_PATIENCE"] = "60"
    await first.up()
    plan = await fleet.plans.start(_steps(repeatable=repeatable))
    await until(lambda: "start b" in _ledger(fleet, "first"), "the step is in the middle of its work")
    first.kill()
    await first.up()
    if repeatable:
        await until(lambda: _ledger(fleet, "first").count("start b") == 2, "it is tried again where its files are")
        await _go(fleet, "first")
    view = await plan.ended()
    assert moves(view) == []
    assert statuses(view)["b"] == ("completed" if repeatable else "failed")
    assert repeatable or step(view, "b")["result"]["code"] == "OUTCOME_UNKNOWN"


async def test_a_file_tool_killed_after_its_effect_does_it_once_wherever_it_is_repeated(fleet: Fleet) -> None:
    first = fleet.host("first", program=command("edit_file:after_effect", "kill"))
    second = fleet.host("second")
    await first.up()
    steps = [
        run("a", "echo one > a"),
        {"id": "b", "tool": "edit_file", "args": {"path": "a", "oldText": "one", "newText": "one one"},
         "dependsOn": ["a"], **FREE},
    ]  # fmt: skip
    plan = await fleet.plans.start(steps)
    await first.died()
    assert fleet.files("first") == {"a": "one one\n"}
    await second.up()
    assert statuses(await plan.ended()) == {"a": "completed", "b": "completed"}
    assert fleet.files("second") == {"a": "one one\n"}


async def test_a_frozen_host_that_wakes_up_changes_nothing_of_a_plan_that_has_moved(fleet: Fleet) -> None:
    first, second = fleet.host("first"), fleet.host("second")
    first.environ["PLANS_MAX_ACTIVITIES"] = "1"
    await first.up()
    plan = await fleet.plans.start(_steps())
    await until(lambda: "start b" in _ledger(fleet, "first"), "the step is in the middle of its work")
    assert first.running is not None
    first.running.send_signal(signal.SIGSTOP)
    await second.up()
    await until(lambda: "start b" in _ledger(fleet, "second"), "it runs at the other host", patience=200)
    await _go(fleet, "second")
    view = await plan.ended()
    ended = fleet.files("second")
    assert statuses(view) == {"a": "completed", "b": "completed", "c": "completed"}
    (fleet.place("first") / GO).write_text("")
    first.running.send_signal(signal.SIGCONT)
    assert await first.stop() == 0
    assert fleet.files("second") == ended
    after = await plan.view()
    assert (after["status"], after["workspace"]) == ("completed", str(fleet.place("second")))


def _steps(**more: Any) -> list[dict[str, Any]]:
    return [run("a", "echo one > a"), work("b", "a", args=WAITS, **more), run("c", "cp a c", "b")]


async def _killed_within(fleet: Fleet, **more: Any) -> Started:
    """A plan whose first host was killed within its second step; the second host is up."""
    first, second = fleet.host("first"), fleet.host("second")
    await first.up()
    plan = await fleet.plans.start(_steps(**more))
    await until(lambda: "start b" in _ledger(fleet, "first"), "the step is in the middle of its work")
    first.kill()
    await second.up()
    return plan


async def _go(fleet: Fleet, name: str) -> None:
    await until(lambda: "start b" in _ledger(fleet, name), "the step is in the middle of its work")
    (fleet.place(name) / GO).write_text("")


def _names(fleet: Fleet, name: str) -> list[str]:
    try:
        return [*fleet.files(name)]
    except (OSError, ValueError):
        return []


def _ledger(fleet: Fleet, name: str) -> str:
    try:
        return fleet.files(name).get("ledger.txt", "")
    except (OSError, ValueError):  # no plan has a place there yet
        return ""

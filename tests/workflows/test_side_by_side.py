"""Steps side by side in one workspace, on a real server: what is listed is what each one did."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from temporalio.client import Client

from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.features.files.model import ChangesReport
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import Plans, Started, step
from tests.nightly import only_nightly

pytestmark = pytest.mark.modes("plain")


def command(name: str, text: str, **more: Any) -> dict[str, Any]:
    """A step that runs a command and needs nobody."""
    return {"id": name, "tool": "run_command", "args": {"command": text}, "requiresApproval": False, **more}


def traced() -> None:
    """End the test where commands cannot be traced."""
    if choose("auto").level == "none" and os.geteuid() != 0:
        pytest.skip("commands are not traced without a sandbox, unless the worker is root")


async def listed(plans: Plans, started: Started) -> ChangesReport:
    return await runs.file_changes(plans.client, started.id.removeprefix("plan-"), diffs=False)


def paths(report: ChangesReport) -> dict[str, set[str]]:
    return {call.step_id: {change.path for change in call.changes} for call in report.calls}


def content(plans: Plans) -> dict[str, str]:
    files = [path for path in plans.workspace.rglob("*") if path.is_file()]
    return {str(path.relative_to(plans.workspace)): path.read_text() for path in files}


THREE = [
    command("a", "until [ -e c.txt ]; do sleep 0.02; done; echo a > a.txt; sleep 0.2"),
    command("b", "until [ -e a.txt ]; do sleep 0.02; done; x=b; echo b > $x.txt; sleep 0.2"),
    command("c", ": > c.txt; until [ -e b.txt ]; do sleep 0.02; done; sleep 0.1"),
]


async def test_three_steps_side_by_side_list_their_own_files_and_one_that_sleeps_no_others(plans: Plans) -> None:
    traced()
    started = await plans.start(THREE)
    view = await started.ended()
    assert view["step_files"] == {"0": ["a.txt"], "1": ["b.txt"], "2": ["c.txt"]}
    assert "step_files_shared" not in view
    assert [step(view, name).get("sharedFiles") for name in "abc"] == [None, None, None]
    assert paths(await listed(plans, started)) == {"a": {"a.txt"}, "b": {"b.txt"}, "c": {"c.txt"}}
    assert "one of" not in await started.handle.query("text")


async def test_where_steps_cannot_be_told_apart_every_view_says_one_of_them_and_the_plan_is_undone(
    idle: Plans, temporal_client: Client, settings: Settings
) -> None:
    untraced = settings.model_copy(update={"trace": False})
    async with build(temporal_client, untraced, load_tools(()), indexed=True):
        started = await idle.start(THREE)
        view = await started.ended()
        assert view["step_files_shared"]["2"]["a.txt"] in ("one of c, a, b", "one of c, b, a")
        assert "a.txt" in step(view, "c")["sharedFiles"]
        assert set(step(view, "c")["sharedWith"]) == {"a", "b"}
        text = await started.handle.query("text")
        assert "a.txt (one of c, " in text
        report = await listed(idle, started)
        found = {change.path: change for call in report.calls if call.step_id == "c" for change in call.changes}
        assert set(found["a.txt"].others) <= {"a", "b"}
        undone = await runs.undo(idle.client, started.id.removeprefix("plan-"))
        assert (undone.refused, content(idle)) == ([], {})


@pytest.mark.parametrize("count", [15, only_nightly(60)])
async def test_many_steps_side_by_side_are_listed_exactly_and_undone_completely(plans: Plans, count: int) -> None:
    """Each writes a file of its own, one into a directory that all make, and a line into one file."""
    traced()
    (plans.workspace / "log").write_text("begun\n")
    names = [f"s{number}" for number in range(count)]
    text = "n={}; mkdir -p d/e; echo $n > own_$n; echo $n > d/e/$n; echo $n >> log"
    started = await plans.start([command(name, text.format(name)) for name in names])
    view = await started.ended()
    assert view["counts"] == {"total": count, "completed": count}
    # On a busy machine an attempt may go without a heartbeat for too long, and there is another.
    lines = Counter((plans.workspace / "log").read_text().split()) - Counter(["begun"])
    assert set(lines) == set(names)
    assert all(lines[name] <= len(view["step_tool_history"][str(at)]) for at, name in enumerate(names))
    report = await listed(plans, started)
    found = {name: files - {"d", "d/e"} for name, files in paths(report).items()}
    assert found == {name: {f"own_{name}", f"d/e/{name}", "log"} for name in names}
    assert not [change for call in report.calls for change in call.changes if change.shared]
    undone = await runs.undo(plans.client, started.id.removeprefix("plan-"))
    assert (undone.refused, content(plans)) == ([], {"log": "begun\n"})
    assert [path.name for path in plans.workspace.iterdir()] == ["log"]

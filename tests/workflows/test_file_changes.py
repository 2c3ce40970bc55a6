"""Which step wrote which file, and undo: real plans, real commands, a real server."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client import runs
from plansurvive.client.verbs import pending
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.errors import PlanError
from tests.kit.driving import Plans, Started, count, step
from tests.kit.waiting import until

pytestmark = [pytest.mark.modes("plain"), pytest.mark.uses("files")]

SORT = "sort out/copy.csv > sorted.csv; sort -o data.csv data.csv"
WRITE = "open('n' + 'ew', 'w').write('x' * 300)\nprint('y' * 300)"
FREE: dict[str, Any] = {"requiresApproval": False}
GATE = {"id": "gate", "tool": "write_file", "args": {"path": "gate.txt", "content": "x"}, "requiresApproval": True}
STEPS: list[dict[str, Any]] = [
    {"id": "load", "tool": "read_file", "args": {"path": "data.csv"}},
    {"id": "save", "tool": "write_file", "args": {"path": "out/copy.csv", "content": "$load"}},
    {"id": "sort", "tool": "run_command", "args": {"command": SORT}, "dependsOn": ["save"], **FREE},
    {"id": "python", "tool": "run_python", "args": {"code": WRITE}, "dependsOn": ["sort"], **FREE},
]


async def run(plans: Plans) -> Started:
    (plans.workspace / "data.csv").write_text("b\na\n")
    started = await plans.start(STEPS)
    await started.ended()
    return started


async def test_the_view_names_the_files_and_calls_of_every_step(plans: Plans) -> None:
    started = await run(plans)
    view = await started.view()
    assert view["step_files"] == {"1": ["out/copy.csv"], "2": ["data.csv", "sorted.csv"], "3": ["new"]} or (
        view["step_files"]["2"] == ["sorted.csv", "data.csv"]
    )
    history = view["step_tool_history"]
    assert [history[str(index)][0]["tool"] for index in range(4)] == [each["tool"] for each in STEPS]
    assert history["1"][0]["args"]["content"] == "b\na\n"
    assert history["3"][0]["result"].endswith("...[truncated]")
    assert history["2"][0]["sandbox"] in ("bwrap", "landlock", "none")
    assert "sandbox" not in history["0"][0]
    assert "Files: out/copy.csv" in await started.handle.query("text")


async def test_calls_before_an_approval_are_listed_too(plans: Plans) -> None:
    (plans.workspace / "theirs").write_text("theirs")
    started = await plans.start([{"id": "w", "tool": "write_file", "args": {"path": "theirs", "content": "ours"}}])
    await started.until_asked("w")
    await started.approve("w")
    calls = (await started.ended())["step_tool_history"]["0"]
    assert [call["tool"] for call in calls] == ["write_file", "write_file"]
    assert ("neither created nor read" in calls[0]["result"], "theirs" in calls[1]["result"]) == (True, True)


async def test_a_failed_command_leaves_its_files_on_record(plans: Plans) -> None:
    command = {
        "id": "c",
        "tool": "run_command",
        "args": {"command": "echo half > made; exit 3"},
        "retry": {"attempts": 1},
    }
    started = await plans.start([command | {"requiresApproval": False}])
    view = await started.ended()
    assert (step(view, "c")["status"], view["step_files"]) == ("failed", {"0": ["made"]})
    assert "exit code 3" in view["step_tool_history"]["0"][0]["result"]


async def test_a_plan_is_taken_back(plans: Plans) -> None:
    started = await run(plans)
    name = started.id.removeprefix("plan-")
    report = await runs.file_changes(plans.client, name)
    assert [call.step_id for call in report.calls] == ["save", "sort", "python"]
    assert "+b\n" in report.calls[0].changes[0].diff
    dry = await runs.undo(plans.client, name, dry_run=True)
    assert {each.path for each in dry.restored} >= {"sorted.csv", "new", "out/copy.csv"}
    assert (plans.workspace / "new").exists()
    (plans.workspace / "new").write_text("mine")
    refused = await runs.undo(plans.client, name, "python")
    assert ([each.code for each in refused.refused], (plans.workspace / "new").read_text()) == (["CONFLICT"], "mine")
    (plans.workspace / "new").write_text("x" * 300)
    await runs.undo(plans.client, name, partly=True)
    left = {str(path.relative_to(plans.workspace)) for path in plans.workspace.rglob("*") if path.is_file()}
    assert left == {"data.csv"}


@pytest.mark.on_server("lists")
async def test_listings_and_trials_of_an_undo_leave_no_rows_among_the_plans(plans: Plans) -> None:
    started = await run(plans)
    name = started.id.removeprefix("plan-")
    await runs.file_changes(plans.client, started.id)
    await runs.undo(plans.client, started.id, dry_run=True)
    listings = f"WorkflowType = 'ChangesWorkflow' AND WorkflowId STARTS_WITH 'files-{name}-'"

    async def is_gone() -> bool:
        try:
            await plans.client.get_workflow_handle(f"undo-{name}").describe()
        except RPCError as error:
            return error.status is RPCStatusCode.NOT_FOUND and await count(plans.client, listings) == 0
        return False

    await until(is_gone, "the server has deleted them")


async def test_a_plan_that_runs_and_a_step_that_is_not_there_are_refused(plans: Plans) -> None:
    gate = {"id": "gate", "tool": "write_file", "args": {"path": "x", "content": ""}, "requiresApproval": True}
    started = await plans.start([gate])
    await started.until_asked("gate")
    with pytest.raises(PlanError) as running:
        await runs.undo(plans.client, started.id)
    with pytest.raises(PlanError) as unknown:
        await runs.file_changes(plans.client, started.id, "nothing")
    assert (running.value.code, unknown.value.code) == ("NOT_ENDED", "UNKNOWN_STEP")
    await started.approve("gate")
    await started.ended()


def loop_of_plans(name: str, **inner: Any) -> dict[str, Any]:
    """A loop whose items run a plan that writes a file."""
    write = {
        "id": "write",
        "tool": "write_file",
        "args": {"path": f"{{{{inputs.i}}}}-{name}.txt", "content": "x"},
        **inner,
    }
    return {"id": name, "forEach": {"items": ["v", "w"], "as": "item"}, "tool": "plan",
            "args": {"steps": [write], "inputs": {"i": "$item"}}}  # fmt: skip


async def test_the_files_of_plans_in_loops_and_blocks_are_listed_and_undone_with_the_others(plans: Plans) -> None:
    steps: list[dict[str, Any]] = [
        {"id": "each", "forEach": {"items": ["x", "y"], "as": "item", "mode": "plans"}, "tool": "write_file",
         "args": {"path": "{{item}}.txt", "content": "x"}},
        loop_of_plans("loop"),
        {"id": "block", "steps": [{"id": "in", "tool": "plan", "args": {"steps": [loop_of_plans("deep")]}}],
         "dependsOn": ["loop"]},
        {"id": "never", "forEach": {"items": []}, "tool": "plan", "args": {"steps": [GATE]}},
    ]  # fmt: skip
    plan = await plans.start(steps)
    view = await plan.ended()
    assert view["status"] == "completed", view["log"]
    report = await runs.file_changes(plans.client, plan.id)
    assert {each.step_id for each in report.calls} == {
        "each[0..1]/each[0]", "each[0..1]/each[1]", "loop[0]/write", "loop[1]/write", "block.in/deep[0]/write",
        "block.in/deep[1]/write",
    }  # fmt: skip
    of_one = await runs.file_changes(plans.client, plan.id, "loop")
    assert {each.step_id for each in of_one.calls} == {"loop[0]/write", "loop[1]/write"}
    names = ["v-deep.txt", "v-loop.txt", "w-deep.txt", "w-loop.txt", "x.txt", "y.txt"]
    assert sorted(path.name for path in plans.workspace.glob("*.txt")) == names
    done = await runs.undo(plans.client, plan.id)
    assert not done.refused
    assert not [*plans.workspace.glob("*.txt")]


async def test_what_plans_in_a_loop_ask_is_asked_by_the_plan(plans: Plans) -> None:
    plan = await plans.start([loop_of_plans("loop", requiresApproval=True)])

    async def asked() -> list[Pending] | None:
        found = await pending.of_plan(plans.client, plan.id, 10.0)
        return found if len(found) == 2 else None

    for each in await until(asked, "both items ask"):
        assert each.plan_id.startswith(f"{plan.id.removeprefix('plan-')}-loop-")
        await Started(plans.client, f"plan-{each.plan_id}").approve(each.step_id)
    assert (await plan.ended())["status"] == "completed"

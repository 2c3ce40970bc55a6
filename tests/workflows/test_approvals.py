"""Approvals on a real server: before, while and after a step waits; by signal, update and command line."""

from __future__ import annotations

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.client import runs
from plansurvive.client.decisions import Choice
from plansurvive.plans.definition.checks.will_ask import Ground, will_ask
from plansurvive.plans.model import Plan
from plansurvive.runtime.server import Server
from tests.kit.driving import WAITS, Plans, refusals, statuses, step, work
from tests.workflows.conftest import MakeWorker

pytestmark = pytest.mark.oldest_server

WORKFLOW_TASKS = (
    EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
)


def gate(step_id: str = "gate", *needs: str, **more: Any) -> dict[str, Any]:
    """A step that a person must approve."""
    return work(step_id, *needs, requiresApproval=True, **more)


@pytest.mark.crosses_runs
async def test_an_approval_lets_the_waiting_step_start(plans: Plans) -> None:
    plan = await plans.start([work("a"), gate("gate", "a"), work("b", "gate")])
    view = await plan.until_asked("gate")
    assert [each["stepId"] for each in view["pending"]] == ["gate"]
    assert view["pending"][0]["args"] == {"name": "gate", "seconds": 0.0}
    await plan.approve("gate", by="ann", comment="fine")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert view["pending"] == []
    assert any(entry["text"] == "step 'gate' approved by ann: fine" for entry in view["log"])


@pytest.mark.crosses_runs
async def test_an_approval_that_comes_before_there_is_a_worker_counts(idle: Plans, make_worker: MakeWorker) -> None:
    plan = await idle.start([work("a"), gate("gate", "a")])
    await plan.approve("gate")
    async with make_worker():
        view = await plan.ended()
    assert view["status"] == "completed"


@pytest.mark.crosses_runs
async def test_an_approval_that_comes_before_the_step_is_ready_counts(plans: Plans) -> None:
    plan = await plans.start([work("a", args=WAITS), gate("gate", "a")])
    await plan.until_status("a", "running")
    await plan.approve("gate", by="early")
    plans.go()
    view = await plan.ended()
    assert view["status"] == "completed"
    assert "early" in next(entry["text"] for entry in view["log"] if entry["kind"] == "approved")


@pytest.mark.crosses_runs
async def test_a_second_decision_changes_nothing_and_is_said_so(plans: Plans) -> None:
    plan = await plans.start([gate(), gate("other")])
    await plan.until_asked("gate")
    await plan.deny("gate", by="ann")
    await plan.approve("gate", by="bob")
    await plan.until_logged("refused", "ALREADY_DECIDED")
    await plan.until_status("gate", "skipped")
    await plan.approve("other")
    view = await plan.ended()
    [refused] = refusals(view)
    assert refused.startswith("REFUSED:ALREADY_DECIDED approve: step 'gate' was already denied by ann on ")
    assert statuses(view) == {"gate": "skipped", "other": "completed"}


async def test_a_decision_about_a_step_that_is_done_or_does_not_exist_is_refused(plans: Plans) -> None:
    plan = await plans.start([work("done"), gate("gate", "done")])
    await plan.until_asked("gate")
    await plan.approve("done")
    await plan.deny("nowhere")
    view = await plan.until_logged("refused", "UNKNOWN_STEP")
    assert [text.split()[0] for text in refusals(view)] == ["REFUSED:TOO_LATE", "REFUSED:UNKNOWN_STEP"]
    await plan.approve("gate")
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_a_decision_about_another_version_of_the_plan_is_refused(plans: Plans) -> None:
    plan = await plans.start([gate()], version=3)
    await plan.until_asked("gate")
    await plan.approve("gate", version=2)
    view = await plan.until_logged("refused", "STALE_VERSION")
    assert "awaiting" in step(view, "gate")
    await plan.approve("gate", version=3)
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_arguments_of_the_approver_are_checked_and_used(plans: Plans) -> None:
    plan = await plans.start([gate()])
    await plan.until_asked("gate")
    await plan.approve("gate", args={"nme": "x"})
    view = await plan.until_logged("refused", "INVALID_ARGS")
    assert "awaiting" in step(view, "gate")
    await plan.approve("gate", args={"name": "gate", "value": 42})
    view = await plan.ended()
    assert step(view, "gate")["result"]["value"] == 42
    assert step(view, "gate")["args"] == {"name": "gate", "value": 42}


@pytest.mark.crosses_runs
async def test_a_denied_step_is_skipped_and_blocks_what_depends_on_it(plans: Plans) -> None:
    plan = await plans.start([gate(), work("after", "gate"), work("beside")])
    await plan.until_asked("gate")
    await plan.deny("gate", by="ann")
    view = await plan.ended()
    assert statuses(view) == {"gate": "skipped", "after": "blocked", "beside": "completed"}
    assert step(view, "gate")["result"]["error"] == "User denied approval"
    assert step(view, "after")["blockedBy"] == ["gate"]
    assert view["status"] == "partial"


async def test_a_denial_names_the_steps_that_will_not_run_because_of_it(plans: Plans) -> None:
    plan = await plans.start([gate(), work("after", "gate"), work("last", "after"), work("beside")])
    await plan.until_asked("gate")
    said = await runs.deny(plans.client, plan.id, Choice(step_id="gate", by="ann"))
    assert said == "step 'gate' denied by ann; after, last wait for it and will not run"
    assert statuses(await plan.ended()) == {
        "gate": "skipped", "after": "blocked", "last": "blocked", "beside": "completed",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [("deny", "skipped", "NOBODY_ANSWERED"), ("approve", "completed", None), ("fail", "failed", "APPROVAL_TIMEOUT")],
)
@pytest.mark.crosses_runs
async def test_when_the_time_is_over_the_rule_decides(plans: Plans, answer: str, status: str, code: str | None) -> None:
    view = await plans.run([gate(approval={"timeout": 0.3, "onTimeout": answer})])
    assert step(view, "gate")["status"] == status
    assert step(view, "gate")["result"].get("code") == code
    assert any("no decision within" in entry["text"] for entry in view["log"])


@pytest.mark.slow
async def test_a_decision_in_time_stops_the_clock(plans: Plans) -> None:
    plan = await plans.start([gate(approval={"timeout": 5.0, "onTimeout": "deny"}, seconds=5.5)])
    await plan.until_asked("gate")
    await plan.approve("gate")
    view = await plan.ended()
    assert view["status"] == "completed"
    assert not any("no decision within" in entry["text"] for entry in view["log"])


async def test_decide_answers_and_approves(plans: Plans) -> None:
    plan = await plans.start([gate()])
    await plan.until_asked("gate")
    answer = await plan.handle.execute_update("decide", {"stepId": "gate", "approved": True, "by": "ann"})
    assert answer["approved"] is True
    assert answer["by"] == "ann"
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"stepId": "nowhere", "approved": True}, "UNKNOWN_STEP"),
        ({"stepId": "gate"}, "BAD_MESSAGE"),
        ({"stepId": "gate", "approved": "yes"}, "BAD_MESSAGE"),
        ({"stepId": "gate", "approved": True, "args": {"nme": 1}}, "INVALID_ARGS"),
        ({"stepId": "gate", "approved": True, "version": 9}, "STALE_VERSION"),
        (None, "BAD_MESSAGE"),
    ],
)
@pytest.mark.modes("plain")
async def test_a_refused_decision_leaves_nothing_in_the_history(plans: Plans, message: Any, code: str) -> None:
    plan = await plans.start([gate()])
    await plan.until_asked("gate")
    before = len(await plan.events())
    with pytest.raises(WorkflowUpdateFailedError) as raised:
        await plan.handle.execute_update("decide", message)
    assert isinstance(raised.value.cause, ApplicationError)
    assert raised.value.cause.type == code
    # Nothing but the task that refused may be in history: no update was accepted.
    added = [event.event_type for event in (await plan.events())[before:]]
    assert not [kind for kind in added if kind not in WORKFLOW_TASKS], added
    await plan.deny("gate")
    assert statuses(await plan.ended()) == {"gate": "skipped"}


@pytest.mark.modes("plain")
async def test_the_same_update_sent_twice_is_one_decision(plans: Plans) -> None:
    plan = await plans.start([gate(), gate("last", "gate")])
    await plan.until_asked("gate")
    message = {"stepId": "gate", "approved": True, "by": "ann"}
    first = await plan.handle.execute_update("decide", message, id="one")
    assert await plan.handle.execute_update("decide", message, id="one") == first
    await plan.approve("last")
    view = await plan.ended()
    assert [entry["kind"] for entry in view["log"] if entry.get("stepId") == "gate"] == ["approved"]


async def test_destructive_tools_ask_by_default_and_a_plan_may_waive_it(plans: Plans) -> None:
    steps: list[dict[str, Any]] = [
        {"id": "asks", "tool": "run_command", "args": {"command": "echo a"}},
        {"id": "waived", "tool": "run_command", "args": {"command": "echo b"}, "requiresApproval": False},
    ]
    plan = await plans.start(steps)
    await plan.until_status("waived", "completed")
    assert step(await plan.until_asked("asks"), "asks")["requiresApproval"] is True
    await plan.deny("asks")
    assert statuses(await plan.ended()) == {"asks": "skipped", "waived": "completed"}


async def test_yes_to_all_asks_nobody(plans: Plans) -> None:
    command = {"id": "asks", "tool": "run_command", "args": {"command": "echo a"}}
    assert (await plans.run([command, gate()], {"approveAll": True}))["status"] == "completed"


@pytest.mark.crosses_runs
async def test_a_strict_worker_honours_no_waiver(idle: Plans, make_worker: MakeWorker) -> None:
    command = {"id": "asks", "tool": "run_command", "args": {"command": "echo a"}, "requiresApproval": False}
    async with make_worker(approvals="strict"):
        plan = await idle.start([command, work("free")], {"approveAll": True})
        await plan.until_asked("asks")
        await plan.approve("asks")
        view = await plan.ended()
    assert statuses(view) == {"asks": "completed", "free": "completed"}


NEW_NAMES = {
    "CONVENTIONS.txt": True,
    "new/a.txt": True,
    "src/a.txt": False,
    "src/deep/a.txt": False,
    "src/.odd": True,
    "src/.odd-folder/a.txt": True,
    ".made-by-others/a.txt": True,
}
"""Names of files that nobody listed, and whether strict approvals ask for them."""


async def test_strict_approvals_ask_for_new_names_at_the_top_and_with_a_dot(
    idle: Plans, make_worker: MakeWorker
) -> None:
    for name in ("src", ".made-by-others"):
        (idle.workspace / name).mkdir()
    steps = [
        {"id": f"w{number}", "tool": "write_file", "args": {"path": path, "content": "x"}}
        for number, path in enumerate(NEW_NAMES)
    ]
    expected = {f"w{number}": asks for number, asks in enumerate(NEW_NAMES.values())}
    plan = Plan.model_validate({"steps": steps})
    tools = {name: tool.spec for name, tool in builtin_tools().items()}
    ground = Ground(tools, lambda path: (idle.workspace / path).exists(), lambda _: [], strict=True)
    told = {each.step_id for each in will_ask(plan, ground) if each.first_run}
    assert told == {name for name, asks in expected.items() if asks}
    assert not [each for each in will_ask(plan, replace(ground, strict=False)) if each.first_run]
    async with make_worker(approvals="strict"):
        started = await idle.start(steps)
        for name, asks in expected.items():
            await (started.until_asked(name) if asks else started.until_status(name, "completed"))
        for name in (name for name, asks in expected.items() if asks):
            await started.approve(name)
        assert (await started.ended())["status"] == "completed"
    for path in NEW_NAMES:
        (idle.workspace / path).unlink()
    async with make_worker():
        assert (await idle.run(steps))["status"] == "completed"


async def test_writing_over_a_file_the_run_does_not_know_asks_first(plans: Plans) -> None:
    (plans.workspace / "theirs.txt").write_text("theirs")
    plan = await plans.start([{"id": "write", "tool": "write_file", "args": {"path": "theirs.txt", "content": "ours"}}])
    view = await plan.until_asked("write")
    assert (plans.workspace / "theirs.txt").read_text() == "theirs"
    assert any("theirs.txt" in entry["text"] for entry in view["log"] if entry["kind"] == "asks")
    await plan.approve("write")
    assert (await plan.ended())["status"] == "completed"
    assert (plans.workspace / "theirs.txt").read_text() == "ours"
    assert set(await plan.scheduled()) == {"write", "write#2"}


@pytest.mark.crosses_runs
async def test_writing_over_a_file_the_run_read_or_made_asks_nobody(plans: Plans) -> None:
    (plans.workspace / "read.txt").write_text("theirs")
    steps = [
        {"id": "read", "tool": "read_file", "args": {"path": "read.txt"}},
        {"id": "over", "tool": "write_file", "args": {"path": "./read.txt", "content": "{{read}} and ours"}},
        {"id": "make", "tool": "write_file", "args": {"path": "made.txt", "content": "1"}},
        {"id": "again", "tool": "write_file", "args": {"path": "made.txt", "content": "2"}, "dependsOn": ["make"]},
    ]
    assert (await plans.run(steps))["status"] == "completed"
    assert (plans.workspace / "read.txt").read_text() == "theirs and ours"
    assert (plans.workspace / "made.txt").read_text() == "2"


@pytest.mark.modes("plain")
@pytest.mark.on_server("a program of another process")
async def test_temporals_own_command_line_approves(plans: Plans, temporal_binary: Path, server: Server) -> None:
    plan = await plans.start([gate("s2")])
    await plan.until_asked("s2")
    command = [str(temporal_binary), "workflow", "signal", "--address", server.address, "--workflow-id", plan.id]
    command += ["--name", "approve", "--input", '{"stepId":"s2"}']
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (await plan.ended())["status"] == "completed"


@pytest.mark.crosses_runs
async def test_many_contrary_decisions_at_once_give_one_decision_each(plans: Plans) -> None:
    names = [f"gate{number}" for number in range(8)]
    plan = await plans.start([gate(name) for name in [*names, "last"]])
    await asyncio.gather(*(send(name) for name in names for send in (plan.approve, plan.deny, plan.approve)))
    await plan.approve("last")  # before it has ended, no message comes too late for it
    view = await plan.ended()
    assert set(statuses(view).values()) <= {"completed", "skipped"}
    decided = [entry["stepId"] for entry in view["log"] if entry["kind"] in ("approved", "denied")]
    assert sorted(decided) == [*names, "last"]
    assert {text.split()[0] for text in refusals(view)} <= {"REFUSED:ALREADY_DECIDED", "REFUSED:TOO_LATE"}


@pytest.mark.crosses_runs
async def test_an_approval_can_be_remembered_for_the_tool_in_this_run(plans: Plans) -> None:
    risky = [{"id": name, "tool": "run_command", "args": {"command": f"echo {name}"}} for name in ("a", "b")]
    later = {"id": "c", "tool": "run_command", "args": {"command": "echo c"}, "dependsOn": ["a", "b"]}
    stated = {"id": "d", "tool": "run_command", "args": {"command": "echo d"}, "requiresApproval": True}
    plan = await plans.start([*risky, later, stated])
    for name in ("a", "b", "d"):
        await plan.until_asked(name)
    await plan.approve("a", by="ann", remember=True)
    view = await plan.until_status("c", "completed")
    assert statuses(view) == {"a": "completed", "b": "completed", "c": "completed", "d": "ready"}
    await plan.deny("d")
    assert statuses(await plan.ended())["d"] == "skipped"


@pytest.mark.crosses_runs
async def test_a_remembered_approval_of_commands_does_not_give_them_the_network(plans: Plans) -> None:
    quiet = {"id": "a", "tool": "run_command", "args": {"command": "echo a"}}
    loud = {"id": "b", "tool": "run_command", "args": {"command": "echo b", "network": True}, "dependsOn": ["a"]}
    again = {"id": "c", "tool": "run_command", "args": {"command": "echo c", "network": True}, "dependsOn": ["b"]}
    plan = await plans.start([quiet, loud, again])
    await plan.until_asked("a")
    await plan.approve("a", by="ann", remember=True)
    await plan.until_asked("b")
    await plan.approve("b", by="ann", remember=True)
    assert set(statuses(await plan.ended()).values()) == {"completed"}


@pytest.mark.crosses_runs
async def test_an_early_approval_does_not_cover_values_that_come_later(plans: Plans) -> None:
    plan = await plans.start([work("r", args={"value": "evil"}), gate("gate", args={"value": "{{r}}"})])
    await plan.approve("gate", by="early")
    await plan.until_asked("gate")
    view = await plan.until_logged("void", "did not say which values it was about")
    item = view["pending"][0]
    assert (item["args"]["value"], item["changed"]) == ("evil", False)
    await plan.approve("gate", digest="0" * 64)
    await plan.until_logged("refused", "STALE_DIGEST")
    await plan.approve("gate", digest=item["digest"])
    assert step(await plan.ended(), "gate")["result"]["value"] == "evil"


async def test_a_strict_worker_lets_no_time_limit_approve(idle: Plans, make_worker: MakeWorker) -> None:
    command = {"id": "asks", "tool": "run_command", "args": {"command": "touch ran"}}
    rule = {"timeout": 0.2, "onTimeout": "approve"}
    async with make_worker(approvals="strict"):
        own = await idle.run([{**command, "approval": rule}])
        defaults = await idle.run([command], defaults={"approval": rule})
    assert [each["status"] for each in (own, defaults)] == ["partial", "partial"]
    assert not (idle.workspace / "ran").exists()
    assert any("the worker's approvals are strict" in entry["text"] for entry in own["log"])


@pytest.mark.slow
@pytest.mark.in_turn
async def test_an_edit_may_take_the_time_limit_of_an_approval_away(plans: Plans) -> None:
    plan = await plans.start([gate(approval={"timeout": 4.0}), work("long", seconds=4.5)])
    await plan.until_asked("gate")
    change = {"op": "set", "stepId": "gate", "path": "approval", "value": None}
    await plan.handle.execute_update("edit", {"edits": [change]})
    view = await plan.until_status("long", "completed")
    assert [each["stepId"] for each in view["pending"]] == ["gate"]
    await plan.approve("gate")
    assert (await plan.ended())["status"] == "completed"

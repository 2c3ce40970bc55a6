"""The commands that need a server, as processes against the real one: what they print, how they exit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from plansurvive.client.cli.terminal.session import worth_naming
from plansurvive.runtime.connect import Connection, Origin
from tests.client.cli.command import line_with, plan, plan_process, running, told_to_stop, written
from tests.kit.waiting import until

WRITE: dict[str, Any] = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
REMOVE: dict[str, Any] = {"id": "remove", "tool": "delete_file", "args": {"path": "a.txt"}, "dependsOn": ["write"]}
MISSING: dict[str, Any] = {"id": "miss", "tool": "read_file", "args": {"path": "nope"}}

Environ = dict[str, str]


def file_of(directory: Path, *steps: dict[str, Any], **more: Any) -> str:
    """A plan file of these steps."""
    return written(directory / "plan.json", {"title": "A test", "steps": list(steps), **more})


async def started(environ: Environ, directory: Path, *steps: dict[str, Any]) -> str:
    """Start a plan with the command; returns its id."""
    ended = await plan(environ, "start", file_of(directory, *steps), "--json")
    assert ended.code == 0, ended.err
    return str(ended.json["planId"])


async def test_a_plan_runs_to_its_end_with_a_line_for_each_step(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    ended = await plan(environ, "run", file_of(tmp_path, WRITE, REMOVE), "--yes")
    assert (ended.code, ended.err) == (0, "")
    assert "✓ write" in ended.out
    assert "✓ completed   2 of 2 steps" in ended.out
    assert not (workspace / "a.txt").exists()


async def test_results_are_taken_of_the_last_run_or_of_the_one_that_is_named(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    (workspace / "in.txt").write_text("before")
    read = {"id": "read", "tool": "read_file", "args": {"path": "in.txt"}}
    copy = {"id": "copy", "tool": "write_file", "args": {"path": "out.txt", "content": "$read"}}
    file = file_of(tmp_path, read, copy, title="Since")
    first = (await plan(environ, "run", file, "--since", "last", "--json")).json["summary"]["planId"]
    taken = []
    for since, more in ((first, []), ("last", []), (first, ["--no-cache"]), (first, ["edited"])):
        if more == ["edited"]:
            (workspace / "in.txt").write_text("after")
        (workspace / "out.txt").unlink()
        flags = more if more == ["--no-cache"] else ["--since", since]
        ended = await plan(environ, "run", file, *flags, "--yes", "--json")
        assert ended.code == 0, ended.err
        shown = (await plan(environ, "show", ended.json["summary"]["planId"], "--json")).json
        taken.append([bool(each["result"].get("cache", {}).get("takenFrom")) for each in shown["steps"]])
        assert (workspace / "out.txt").read_text() == (workspace / "in.txt").read_text()
    assert taken == [[True, True], [True, True], [False, False], [False, False]]


async def test_a_plan_that_ends_otherwise_is_exit_code_1(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    partial = await plan(environ, "run", file_of(tmp_path, WRITE, MISSING))
    assert partial.code == 1
    assert "partial" in partial.out
    assert "NOT_FOUND" in partial.out
    failed = await plan(environ, "run", file_of(tmp_path, {**MISSING, "critical": True}), "--json")
    assert (failed.code, failed.json["summary"]["status"]) == (1, "failed")


async def test_an_invalid_plan_starts_nothing(environ: Environ, temporal_client: Client, tmp_path: Path) -> None:
    file = file_of(tmp_path, {**WRITE, "dependsOn": ["x"], "args": {}}, id="never-started")
    for command in ("run", "start"):
        ended = await plan(environ, command, file)
        assert ended.code == 2
        assert "UNKNOWN_DEPENDENCY" in ended.err
        assert "INVALID_ARGS" in ended.err
    assert (await plan(environ | {"PLANS_AUTO_WORKER": "false"}, "show", "never-started")).code == 4


async def test_a_tool_that_only_the_worker_may_know_is_the_workers_to_judge(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    ended = await plan(environ, "run", file_of(tmp_path, {"id": "a", "tool": "no_such_tool"}))
    assert ended.code == 2
    assert "1 warning" in ended.err
    assert "1 problem" in ended.err


@pytest.mark.slow
async def test_the_workspace_is_this_directory_unless_the_plan_names_one_beside_its_file(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    here, beside = tmp_path / "here", tmp_path / "beside"
    here.mkdir()
    beside.mkdir()
    own = {name: value for name, value in environ.items() if name != "PLANS_WORKSPACE"}
    file = file_of(tmp_path, WRITE)
    assert (await plan_process(own, "run", file, cwd=here)).code == 0
    assert (here / "a.txt").read_text() == "hello"
    assert (await plan_process(own, "run", file_of(tmp_path, WRITE, workspace="beside"), cwd=here)).code == 0
    assert (beside / "a.txt").exists()
    missing = await plan_process(own, "run", file, "--workspace", "nowhere", cwd=here)
    assert missing.code == 2
    assert "BAD_WORKSPACE" in missing.err


async def test_inputs_are_typed_by_the_plan(environ: Environ, worker: Worker, tmp_path: Path, workspace: Path) -> None:
    step = {"id": "write", "tool": "write_file", "args": {"path": "{{inputs.name}}.txt", "content": "n={{inputs.n}}"}}
    file = file_of(tmp_path, step, inputs={"n": {"type": "integer"}, "name": {}})
    assert (await plan(environ, "run", file, "--input", "n=3", "--input", "name=3")).code == 0
    assert (workspace / "3.txt").read_text() == "n=3"
    refused = await plan(environ, "run", file, "--input", "n=x", "--json")
    assert (refused.code, {each["code"] for each in refused.json["error"]["problems"]}) == (
        2,
        {"BAD_INPUT", "MISSING_INPUT"},
    )


async def test_an_id_is_used_once(environ: Environ, worker: Worker, tmp_path: Path, queue: str) -> None:
    file = file_of(tmp_path, WRITE)
    first = await plan(environ, "start", file, "--id", queue)
    assert (first.code, first.out.splitlines()[0].split()) == (0, ["plan", queue])
    again = await plan(environ, "start", file, "--id", queue)
    assert again.code == 2
    assert "PLAN_EXISTS" in again.err


@pytest.mark.slow
async def test_a_person_is_asked_and_answers_from_another_command(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    async with running(environ, "run", file_of(tmp_path, WRITE, REMOVE)) as process:
        command = (await line_with(process, "plan approve")).partition("plan approve ")[2].split()

        async def listed() -> bool:
            pending = await plan(environ, "pending", "--json")
            return command[0] in [each["planId"] for each in pending.json]

        await until(listed, "the server's index shows who waits, a little later than the plan itself")
        refused = await plan(environ, "approve", command[0], "nothing")
        assert (refused.code, "UNKNOWN_STEP" in refused.err) == (2, True)
        approved = await plan(environ, "approve", command[0], command[1], "--by", "ann", "--json")
        assert (approved.code, approved.json["message"]) == (0, "step 'remove' approved by ann")
        await line_with(process, "✓ completed")
        assert await process.wait() == 0
    assert not (workspace / "a.txt").exists()


async def test_an_approval_is_of_what_is_shown_and_of_nothing_else(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    """`pending` shows A, an edit makes it B: B runs only for a person who names B."""
    plan_id = await started(environ, tmp_path, WRITE, {**REMOVE, "args": {"path": "A-seen"}})

    async def asked(path: str) -> Any:
        found = (await plan(environ, "show", plan_id, "--json")).json["pending"]
        return found[0] if found and found[0]["args"] == {"path": path} else None

    seen = await until(lambda: asked("A-seen"), "it asks")
    (workspace / "B").touch()
    assert (await plan(environ, "edit", plan_id, "--set", "remove.args.path=B")).code == 0
    now = await until(lambda: asked("B"), "it asks about the other call")
    refused = await plan(environ, "approve", plan_id, "remove")
    rows = ["tool         │ delete_file", f"workspace    │ {workspace}", "path         │ B"]
    shown = refused.err.splitlines()
    at = shown.index(rows[0])
    assert (refused.code, shown[at : at + 3]) == (2, rows)
    assert shown[at - 1].startswith("because      │ the call was changed by ")
    assert f"plan approve {plan_id} remove --digest {now['digest']}" in refused.err
    for option in (["--digest", seen["digest"]], ["--version", "1"]):
        stale = await plan(environ, "approve", plan_id, "remove", *option, "--json")
        assert stale.json["error"]["code"] == f"STALE_{option[0][2:].upper()}"
    assert (await plan(environ, "deny", plan_id, "remove", "--digest", seen["digest"])).code == 2
    assert (workspace / "B").exists()
    assert (await plan(environ, "approve", plan_id, "remove", "--digest", now["digest"])).code == 0
    assert (await plan(environ, "watch", plan_id)).code == 0
    assert not (workspace / "B").exists()


@pytest.mark.slow
@pytest.mark.in_turn
async def test_an_interrupted_run_goes_on_and_says_how_to_get_back(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        async with running(environ, "run", file_of(tmp_path, WRITE, REMOVE)) as process:
            plan_id = (await line_with(process, "plan approve")).partition("plan approve ")[2].split()[0]
            told = await told_to_stop(process, number)
        assert process.returncode == 130
        assert f"plan watch {plan_id}" in told
        assert (await plan(environ, "summary", plan_id, "--json")).json["status"] == "running"
        assert (await plan(environ, "cancel", plan_id)).code == 0
        watched = await plan(environ, "watch", plan_id, "--json")
        assert watched.code == 1
        assert {json.loads(row)["stepId"] for row in watched.out.splitlines()} >= {"write", "remove"}


async def test_a_plan_is_controlled_and_shown_by_commands(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    plan_id = await started(environ, tmp_path, WRITE, REMOVE)

    async def is_half_done() -> bool:
        return "Progress: 1/2" in (await plan(environ, "show", plan_id)).out

    await until(is_half_done, "the first step is done")
    assert (await plan(environ, "pause", plan_id)).code == 0
    assert "Progress: 1/2" in (await plan(environ, "show", plan_id)).out
    assert (await plan(environ, "show", plan_id, "--json")).json["status"] == "paused"
    again = await plan(environ, "pause", plan_id)
    assert (again.code, again.err) == (2, f"NOT_RUNNING: plan '{plan_id}' is paused already\n")
    assert "unpaused" in (await plan(environ, "unpause", plan_id)).out
    for command, code in (("unpause", "NOT_PAUSED"), ("begin", "NOT_IN_REVIEW")):
        refused = await plan(environ, command, plan_id, "--json")
        assert (refused.code, refused.json["error"]["code"]) == (2, code)
    assert (await plan(environ, "deny", plan_id, "remove", "--comment", "no")).code == 0
    assert (await plan(environ, "watch", plan_id)).code == 1, "a denied step makes it partial"
    assert "User denied approval" in (await plan(environ, "summary", plan_id)).out
    assert (await plan(environ, "summary", plan_id, "--markdown")).out.startswith("# A test")
    assert ":::skipped" in (await plan(environ, "graph", f"plan-{plan_id}")).out
    closed = await plan(environ, "cancel", plan_id, "--json")
    assert (closed.code, closed.json["error"]["code"]) == (2, "PLAN_CLOSED")


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_person_is_asked_about_the_very_arguments(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    remove = {**REMOVE, "args": {"path": "$write.path"}}
    async with running(environ, "run", file_of(tmp_path, WRITE, remove), "--id", "very") as process:
        assert (await line_with(process, " path ")).endswith("│ a.txt\n")
        assert (await plan(environ, "deny", "very", "remove")).code == 0


@pytest.mark.slow
async def test_a_plan_run_in_a_pipe_says_that_it_is_in_review(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    for name, flags in {"piped": [], "piped-json": ["--json"]}.items():
        async with running(environ, "run", file_of(tmp_path, WRITE), "--review", "--id", name, *flags) as process:
            assert process.stderr
            assert "The plan is in review." in (await asyncio.wait_for(process.stderr.readline(), 90)).decode()
            await until(lambda: plan_is(environ, name, "review"), "the plan is in review")  # noqa: B023
            assert (await plan(environ, "begin", name)).code == 0
            assert await asyncio.wait_for(process.wait(), 90) == 0


async def plan_is(environ: Environ, name: str, status: str) -> bool:
    return bool((await plan(environ, "summary", name, "--json")).json["status"] == status)


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_list_of_running_plans_says_that_none_is(environ: Environ, temporal_client: Client) -> None:
    listed = await plan(environ, "list", "--running", "--json")
    if not listed.json:  # the server is shared with other tests
        assert "No plan is running." in (await plan(environ, "list", "--running")).err


async def test_a_plan_in_review_begins_when_told(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    ended = await plan(environ, "start", file_of(tmp_path, WRITE), "--review", "--json")
    plan_id = ended.json["planId"]

    async def in_review() -> bool:
        return bool((await plan(environ, "summary", plan_id, "--json")).json["status"] == "review")

    await until(in_review, "the plan is in review")
    assert (await plan(environ, "begin", plan_id)).code == 0
    assert (await plan(environ, "watch", plan_id)).code == 0


@pytest.mark.slow
@pytest.mark.in_turn
async def test_plans_are_listed(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    plan_id = await started(environ, tmp_path, WRITE)

    async def listed() -> bool:
        return plan_id in (await plan(environ, "list")).out

    await until(listed, "the plan is listed")
    rows = (await plan(environ, "list", "--json", "--limit", "100")).json
    assert next(each for each in rows if each["planId"] == plan_id)["title"] == "A test"


async def test_a_plan_without_a_title_is_listed_by_its_files_name_or_its_id(
    environ: Environ, temporal_client: Client, tmp_path: Path
) -> None:
    content = {"steps": [WRITE]}
    for file, text in ((written(tmp_path / "weekly.json", content), ""), ("-", json.dumps(content))):
        found = (await plan(environ | {"PLANS_AUTO_WORKER": "off"}, "start", file, "--json", stdin=text)).json
        title = await (await temporal_client.get_workflow_handle(found["workflowId"]).describe()).memo_value("title")
        assert title == (found["planId"] if file == "-" else "weekly")
        await temporal_client.get_workflow_handle(found["workflowId"]).terminate()


async def test_a_plan_nobody_knows_is_exit_code_4(environ: Environ, worker: Worker) -> None:
    commands = (["show"], ["watch"], ["summary"], ["graph"], ["cancel"], ["pause"])
    ended = await asyncio.gather(*(plan(environ, *command, "absent") for command in commands))
    assert [(each.code, "PLAN_NOT_FOUND" in each.err) for each in ended] == [(4, True)] * len(commands)
    assert (await plan(environ, "approve", "absent", "x")).code == 4
    await plan(environ, "down")  # on a busy machine the server may not have shown them the worker in time


@pytest.mark.slow
async def test_without_a_worker_the_command_says_how_to_start_one(environ: Environ, tmp_path: Path) -> None:
    alone = environ | {"PLANS_AUTO_WORKER": "false"}
    plan_id = await started(alone, tmp_path, WRITE)
    ended = await plan(alone, "show", plan_id)
    assert ended.code == 3
    assert "plan up" in ended.err


async def test_a_command_keeps_a_worker_for_its_plans(environ: Environ, tmp_path: Path, workspace: Path) -> None:
    try:
        assert (await plan(environ, "run", file_of(tmp_path, WRITE))).code == 0
        assert (workspace / "a.txt").exists()
        unknown = await plan(environ, "run", file_of(tmp_path, {"id": "a", "tool": "no_such_tool"}))
        assert (unknown.code, "UNKNOWN_TOOL" in unknown.err, unknown.out) == (2, True, "")
    finally:
        stopped = await plan(environ, "down")
    assert "worker" in stopped.out


@pytest.mark.slow
async def test_what_an_ended_plan_left_is_shown_without_starting_a_worker(environ: Environ, tmp_path: Path) -> None:
    try:
        assert (await plan(environ, "run", file_of(tmp_path, WRITE), "--id", "left-behind")).code == 0
        assert (await plan(environ, "down", "--json")).json["workers"]
        commands = (["show"], ["show", "--json"], ["watch"], ["summary"], ["graph"])
        ended = [await plan(environ, *command, "left-behind") for command in commands]
        assert [each.code for each in ended] == [0] * len(commands)
        assert "Nothing was running" in (await plan(environ, "down")).out
        assert (await plan(environ, "files", "left-behind")).code == 0
    finally:
        stopped = await plan(environ, "down", "--json")
    assert stopped.json["workers"]


async def test_doctor_finds_the_server_and_the_worker(environ: Environ, worker: Worker) -> None:
    ended = await plan(environ, "doctor", "--json")
    assert ended.code == 0, ended.out
    assert {"server", "worker"} <= {finding["subject"] for finding in ended.json}


async def test_a_workspace_that_no_plan_may_have_is_refused_before_anything_starts(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/etc")
    own = {name: value for name, value in environ.items() if name != "PLANS_WORKSPACE"}
    commands = [("run", file_of(tmp_path, WRITE)), ("start", file_of(tmp_path, WRITE)), ("make", "x"), ("agent", "x")]
    for command in commands:
        for workspace in ("/etc", str(tmp_path / "link"), own["PLANS_STATE_DIR"], "/"):
            ended = await plan(own, *command, "--workspace", workspace)
            assert (ended.code, "WORKSPACE_REFUSED" in ended.err) == (2, True), (command, workspace, ended.err)
    for workspace in ("/etc", "../..", "link"):
        ended = await plan(own, "run", file_of(tmp_path, WRITE, workspace=workspace))
        assert (ended.code, "WORKSPACE_REFUSED" in ended.err) == (2, True), (workspace, ended.err)
    (tmp_path / os.fsdecode(b"odd\xff")).mkdir()
    (tmp_path / "odd").symlink_to(os.fsdecode(b"odd\xff"))
    ended = await plan(own, "run", file_of(tmp_path, WRITE), "--workspace", str(tmp_path / "odd"))
    assert (ended.code, "BAD_WORKSPACE" in ended.err, "not UTF-8" in ended.err) == (2, True, True), ended.err
    beside = tmp_path / "beside"
    beside.mkdir()
    listed = own | {"PLANS_WORKSPACES": str(beside)}
    ended = await plan(listed, "run", file_of(tmp_path, WRITE), "--workspace", str(tmp_path))
    assert "PLANS_WORKSPACES of the worker" in ended.err


def test_a_server_that_a_command_has_started_is_named(temporal_client: Client) -> None:
    started = Connection(temporal_client, "127.0.0.1:7233", Origin.EMBEDDED, is_new=True)
    assert worth_naming(started) == ("Server 127.0.0.1:7233, started by plan in the background; `plan down` stops it.")


@pytest.mark.parametrize("origin", Origin)
def test_a_server_that_nobody_named_is_named(temporal_client: Client, origin: Origin) -> None:
    said = worth_naming(Connection(temporal_client, "localhost:7233", origin))
    assert said == {
        Origin.LOCAL: "Server localhost:7233, already running on this machine; "
        "PLANS_SERVER=embedded starts one of your own."
    }.get(origin, "")


async def test_a_step_that_was_decided_is_refused_without_its_call(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    nap = {"id": "nap", "tool": "sleep", "args": {"seconds": 600}}
    say = {"id": "say", "tool": "run_command", "args": {"command": "echo spoken"}, "dependsOn": ["nap"]}
    assert (
        await plan(environ, "start", written(tmp_path / "plan.json", {"id": "twice", "steps": [nap, say]}))
    ).code == 0
    first = await plan(environ, "approve", "twice", "say", "--by", "ann")
    assert (first.code, "echo spoken" in first.err) == (0, True), first
    for command in ("approve", "deny"):
        again = await plan(environ, command, "twice", "say", "--by", "bob")
        assert (again.code, "spoken" in again.out + again.err) == (2, False), again
        assert "ALREADY_DECIDED: step 'say' was already approved by ann" in again.err
        assert "`plan withdraw twice say` takes it back" in " ".join(again.err.split())
    assert (await plan(environ, "cancel", "twice")).code == 0

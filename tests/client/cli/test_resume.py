"""interrupt, resume, rerun, agent and history, as processes against the real server; Ctrl-C on a terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.agents.history_store import AgentHistory
from plansurvive.plans.activity_io import AgentEvent
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.task_queues import listeners
from plansurvive.worker import build
from tests.client.cli.command import CEILING, plan, written
from tests.kit.waiting import until
from tests.nightly import only_nightly

Environ = dict[str, str]
WRITE: dict[str, Any] = {"id": "write", "tool": "write_file", "args": {"path": "a.txt", "content": "hello"}}
NAP: dict[str, Any] = {"id": "nap", "tool": "sleep", "args": {"seconds": 600}, "dependsOn": ["write"]}


async def _ended(environ: Environ, name: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        found: dict[str, Any] = (await plan(environ, "show", name, "--json")).json
        return found if found["endedAt"] else None

    view: dict[str, Any] = await until(look, f"{name} has ended")
    return view


async def test_the_resumed_run_of_a_refused_plan_says_why_it_is_refused_again(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    file = written(tmp_path / "plan.json", {"id": "gone", "steps": [{**WRITE, "tool": "no_such_tool"}]})
    for command in (("run", file), ("resume", "gone"), ("resume", "gone-r2", "--json")):
        told = await plan(environ, *command)
        assert (told.code, "UNKNOWN_TOOL" in told.out + told.err) == (2, True), (command, told)
        assert command[-1] == "--json" or "Its worker refused the plan: 1 problem\n" in told.err or command[0] == "run"
        assert ("plan      gone-r2\n" in told.out) is (command == ("resume", "gone")), "which run was refused"
    told = await plan(environ, "summary", "gone")
    assert "next     plan show gone-r2   shows the run that resumed it" in told.out


async def test_a_dry_run_of_a_resume_or_rerun_names_the_steps_and_starts_nothing(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    rule = {"items": ["y", "x", "y", "y"], "as": "n", "maxParallel": 1}
    fails: dict[str, Any] = {"id": "each", "forEach": rule, "tool": "run_command"}
    fails |= {"args": {"command": "test {{n}} = y"}, "requiresApproval": False}
    fails |= {"retry": {"attempts": 1}, "dependsOn": ["write"]}
    file = written(tmp_path / "plan.json", {"id": "foreseen", "steps": [WRITE, fails, {**NAP, "dependsOn": ["each"]}]})
    assert (await plan(environ, "run", file)).code == 1
    told = await plan(environ, "resume", "foreseen", "--dry-run")
    assert [" ".join(row.split()) for row in told.out.splitlines()] == [
        "would run each[1]", "nap", "each: 2 items not started", "keeps write", "each[0]",
    ]  # fmt: skip
    assert told.err == "Dry run: plan foreseen-r2 was not started.\n"
    shown = (await plan(environ, "rerun", "foreseen", "--from", "write", "--dry-run", "--json")).json
    assert (shown["planId"], shown["runs"], shown["keeps"]) == ("foreseen-r2", ["write", "each[1]", "nap"], ["each[0]"])
    assert shown["items"] == {"each": 2}
    several = await plan(environ, "rerun", "foreseen", "--from", "each[*]", "--from", "write", "--dry-run", "--json")
    assert (several.json["runs"], several.json["keeps"]) == (["write", "each", "nap"], [])
    for option in ("--dry-run", "--follow"):
        told = await plan(environ, "rerun", "foreseen", option)
        assert (told.code, "BAD_USAGE" in told.err) == (2, True)
        assert "of write, each, nap;" in " ".join(told.err.split()), told.err
    assert "PLAN_NOT_FOUND" in (await plan(environ, "show", "foreseen-r2")).err


async def test_a_dry_run_of_a_resume_names_the_files_that_are_read_again_and_those_that_are_not(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    read = {"id": "read", "tool": "read_file", "args": {"path": "{{item}}.txt"}}
    bad = {"id": "write", "tool": "write_file", "args": {"path": "{{read}}", "content": "1"}}
    each = {"id": "each", "forEach": {"items": ["a", "b"], "key": "@"}, "steps": [read, bad]}
    used = {**read, "id": "used", "args": {"path": "a.txt"}}
    steps = [used, {**WRITE, "args": {"path": "c.txt", "content": "$used"}}, each]
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("../bad")
    file = written(tmp_path / "plan.json", {"id": "reread", "steps": steps})
    assert (await plan(environ, "run", file, "--workspace", str(tmp_path))).code == 1
    shown = (await plan(environ, "show", "reread")).out
    assert "plan rerun reread --from 'each[a]' --from 'each[b]'" in shown
    (tmp_path / "a.txt").write_text("good")
    told = await plan(environ, "resume", "reread", "--dry-run")
    assert [" ".join(row.split()) for row in told.out.splitlines()] == [
        "would run each[a]", "each[b].write", "each[a].read: its file 'a.txt' has changed since",
        "keeps used", "write", "each[b].read",
        "note used keeps what it read from 'a.txt', which has changed since",
        "to read it again: plan rerun reread --from used",
    ]  # fmt: skip
    shown = (await plan(environ, "resume", "reread", "--dry-run", "--json")).json
    assert (shown["readAgain"], shown["keepRead"]) == ({"each[a].read": "a.txt"}, {"used": "a.txt"})
    assert (await plan(environ, "resume", "reread", "--follow")).code == 1
    assert (tmp_path / "good").exists()


async def test_a_dry_run_says_what_is_known_of_conditions(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    look: dict[str, Any] = {
        "id": "look",
        "tool": "run_command",
        "args": {"command": "echo y"},
        "requiresApproval": False,
    }
    steps = [
        look,
        {**look, "id": "never", "when": "look.stdout == 'x'"},
        {**look, "id": "last", "when": "look.stdout != 'x'", "dependsOn": ["never"]},
    ]
    file = written(tmp_path / "plan.json", {"id": "conditions", "steps": steps})
    assert (await plan(environ, "run", file)).code == 0
    told = await plan(environ, "rerun", "conditions", "--from", "look", "--dry-run")
    assert [" ".join(row.split()) for row in told.out.splitlines()] == [
        "would run look", "never: only if look.stdout == 'x', which depends on look",
        "last: only if look.stdout != 'x', which depends on look",
    ]  # fmt: skip
    told = await plan(environ, "rerun", "conditions", "--from", "never", "--dry-run")
    assert [" ".join(row.split()) for row in told.out.splitlines()] == [
        "would run last", "skips never: condition not met: look.stdout == 'x'", "keeps look",
    ]  # fmt: skip
    shown = (await plan(environ, "rerun", "conditions", "--from", "never", "--dry-run", "--json")).json
    assert (shown["runs"], shown["skips"]) == (["last"], {"never": "look.stdout == 'x'"})
    assert (shown["conditions"], shown["decidedBy"]) == ({}, {})
    shown = (await plan(environ, "rerun", "conditions", "--from", "look", "--dry-run", "--json")).json
    assert (shown["skips"], shown["decidedBy"]) == ({}, {"never": ["look"], "last": ["look"]})


async def test_a_draft_that_was_interrupted_is_reviewed_when_it_is_resumed(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    file = written(tmp_path / "plan.json", {"id": "drafted", "steps": [WRITE]})
    assert (await plan(environ, "start", file, "--review", "--yes")).code == 0

    async def in_review(name: str) -> bool:
        return bool((await plan(environ, "show", name, "--json")).json["status"] == "review")

    await until(lambda: in_review("drafted"), "it is in review")
    told = await plan(environ, "resume", "drafted")
    assert (told.code, "is in review and has not ended: `plan begin drafted` starts" in told.err) == (2, True), told.err
    assert (await plan(environ, "interrupt", "drafted")).code == 0
    await _ended(environ, "drafted")
    assert (await plan(environ, "resume", "drafted")).code == 0
    await until(lambda: in_review("drafted-r2"), "its next run is in review as well")
    assert (await plan(environ, "begin", "drafted-r2")).code == 0
    await _ended(environ, "drafted-r2")
    assert (workspace / WRITE["args"]["path"]).exists()


async def test_a_plan_is_interrupted_and_resumed_and_its_runs_are_linked(
    environ: Environ, worker: Worker, tmp_path: Path
) -> None:
    file = written(tmp_path / "plan.json", {"id": "linked", "steps": [WRITE, NAP]})
    assert (await plan(environ, "start", file)).code == 0
    told = await plan(environ, "resume", "linked")
    assert (told.code, "`plan watch linked` follows it, and `plan interrupt linked`" in told.err) == (2, True)
    assert (await plan(environ, "pause", "linked")).code == 0
    assert "NOT_ENDED: plan 'linked' is paused" in (await plan(environ, "resume", "linked")).err
    assert (await plan(environ, "unpause", "linked")).code == 0
    assert (await plan(environ, "interrupt", "linked", "--by", "ann")).code == 0
    view = await _ended(environ, "linked")
    assert view["status"] == "cancelled"
    resumed = await plan(environ, "resume", "linked", "--json")
    assert (resumed.code, resumed.json["planId"]) == (0, "linked-r2")
    assert "Resumed by: linked-r2" in (await plan(environ, "show", "linked")).out
    assert "Resumes: linked" in (await plan(environ, "show", "linked-r2")).out
    assert "ALREADY_RESUMED" in (await plan(environ, "resume", "linked")).err
    await plan(environ, "cancel", "linked-r2")
    change = ("--set", "write.args.content=other", "--set", "nap.args.seconds=0")
    rerun = await plan(environ, "rerun", "linked", "--from", "write", *change, "--follow")
    assert (rerun.code, "✓ completed   2 of 2 steps" in rerun.out) == (0, True), rerun.err


async def test_a_resumed_plan_is_followed_from_where_it_was_resumed(
    environ: Environ, worker: Worker, tmp_path: Path, workspace: Path
) -> None:
    read = {"id": "read", "tool": "read_file", "args": {"path": "late.txt"}, "dependsOn": ["write"]}
    file = written(tmp_path / "plan.json", {"id": "late", "steps": [WRITE, read]})
    first = await plan(environ, "run", file)
    assert (first.code, "✓ write" in first.out) == (1, True)
    (workspace / "late.txt").write_text("here")
    resumed = await plan(environ, "resume", "late", "--follow")
    assert (resumed.code, "✓ read" in resumed.out, "write" in resumed.out) == (0, True, False), resumed.out


async def test_a_rerun_says_what_it_needs(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    file = written(tmp_path / "plan.json", {"id": "needs", "steps": [WRITE]})
    assert (await plan(environ, "run", file)).code == 0
    for arguments in ((), ("--from", "write", "--only", "write"), ("--from", "x"), ("--only", "write", "--set", "y")):
        assert (await plan(environ, "rerun", "needs", *arguments)).code == 2
    assert (await plan(environ, "rerun", "nowhere", "--only", "x")).code == 4


async def test_an_agent_runs_and_is_in_the_history(
    environ: Environ, settings: Settings, temporal_client: Client, workspace: Path, tmp_path: Path
) -> None:
    story = [
        {"reply": {"json": {"tool_calls": [{"tool": "write_file", "args": {"path": "a.txt", "content": "1"}}]}}},
        {"reply": {"json": {"answer": "It is written.", "confidence": "high"}}},
    ]
    with ScriptedLlm(Script.of(story)) as llm:
        bound = settings.with_flags(openai_base_url=llm.url, model="demo")
        async with build(temporal_client, bound, load_tools(()), indexed=True):
            await until(lambda: listeners(temporal_client, bound.task_queue), "the server sees the worker poll")
            ended = await plan(environ, "agent", "Write a file", "--id", "cli", "--workspace", str(workspace))
            shown = await plan(environ, "show", "agent-cli")
    assert (ended.code, "It is written." in ended.out) == (0, True), ended.err
    assert "Answer: It is written." in shown.out
    listed = (await plan(environ, "history", "--json")).json
    assert [(each["agentId"], each["status"]) for each in listed] == [("agent-cli", "completed")]
    assert set(listed[0]) == {
        "agentId", "agentType", "taskDescription", "timestamp", "status", "completionTimestamp",
    }  # fmt: skip
    assert (await plan(environ, "history", "--export", str(tmp_path / "out"))).code == 0
    exported = json.loads((tmp_path / "out" / "agent-history.json").read_text())
    assert (exported["max_entries"], exported["entries"][0]["agent_id"]) == (50, "agent-cli")
    assert (await plan(environ, "history", "--active")).out == ""


async def test_a_terminated_agent_is_not_shown_as_running(
    environ: Environ, temporal_client: Client, settings: Settings, queue: str
) -> None:
    store = AgentHistory(settings.state_dir)
    for name in ("agent-terminated", "agent-open", "agent-of-another-server"):
        store.record(AgentEvent(kind="spawned", agent_id=f"{name}-{queue}", time=datetime.now(UTC)))
    for name in ("agent-terminated", "agent-open"):
        await temporal_client.start_workflow("AgentWorkflow", {}, id=f"{name}-{queue}", task_queue=queue)
    await temporal_client.get_workflow_handle(f"agent-terminated-{queue}").terminate()
    listed = (await plan(environ, "history", "--json")).json
    assert {each["agentId"].removesuffix(f"-{queue}"): each["status"] for each in listed} == {
        "agent-terminated": "interrupted", "agent-open": "spawned", "agent-of-another-server": "spawned",
    }  # fmt: skip
    assert listed[0]["completionTimestamp"]
    active = (await plan(environ, "history", "--active", "--json")).json
    assert f"agent-open-{queue}" in [each["agentId"] for each in active]
    assert f"agent-terminated-{queue}" not in [each["agentId"] for each in active]
    away = await plan(environ | {"TEMPORAL_ADDRESS": "127.0.0.1:9"}, "history")
    assert (away.code, "may have ended since" in away.err) == (0, True)
    await temporal_client.get_workflow_handle(f"agent-open-{queue}").terminate()


@pytest.mark.parametrize(
    ("key", "status"), [("i", "cancelled"), only_nightly("c", "cancelled"), only_nightly("l", "running")]
)
async def test_ctrl_c_on_a_terminal_asks_what_is_to_become_of_the_plan(
    environ: Environ, worker: Worker, tmp_path: Path, key: str, status: str
) -> None:
    name = f"ctrl-{key}"
    file = written(tmp_path / "plan.json", {"id": name, "steps": [WRITE, NAP]})
    main, side = pty.openpty()
    command = (sys.executable, "-m", "plansurvive", "run", file)
    process = await asyncio.create_subprocess_exec(
        *command, env={**environ, "TERM": "xterm"}, stdin=side, stdout=side, stderr=side
    )
    os.close(side)
    reader = asyncio.create_task(asyncio.to_thread(_read, main, key))

    async def sleeps() -> bool:
        found = await plan(environ, "show", name, "--json")
        return found.code == 0 and found.json["steps"][1]["status"] == "running"

    await until(sleeps, "the plan sleeps")
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(CEILING):
        code = await process.wait()
    text = await reader
    assert code == 130, text
    view = await _ended(environ, name) if status != "running" else (await plan(environ, "show", name, "--json")).json
    assert view["status"] == status
    assert ("interrupted" in view["stopped"]) == (key == "i")
    if status == "running":
        assert f"plan watch {name}" in text
        await plan(environ, "cancel", name)


def _read(terminal: int, key: str) -> str:
    """What appears on the terminal; the question is answered."""
    text, answered = "", False
    while True:
        try:
            data = os.read(terminal, 65_536)
        except OSError:
            return text
        if not data:
            return text
        text += data.decode(errors="replace")
        if "l/i/c?" in text and not answered:
            os.write(terminal, f"{key}\n".encode())
            answered = True

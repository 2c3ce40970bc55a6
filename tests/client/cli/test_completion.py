"""Completion of ids by the shell: what it offers, and that it is silent when nothing can be asked."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.client.cli.app import run
from plansurvive.client.cli.terminal import completion, environment
from tests.client.cli.command import plan, plan_process, written
from tests.kit.waiting import until

Environ = dict[str, str]


def offered(environ: Environ, ask: Any, *arguments: str) -> Any:
    """What is offered, asked in a thread as the shell's own process would."""

    def run() -> list[str]:
        with environment.environment(environ):
            return list(ask(*arguments))

    return asyncio.to_thread(run)


@pytest.mark.slow
@pytest.mark.sampled
async def test_plans_steps_and_items_are_offered(environ: Environ, worker: Worker, tmp_path: Path) -> None:
    gate = {"id": "gate", "tool": "run_command", "requiresApproval": True}
    loop = {**gate, "args": {"command": "echo {{item}}"}, "forEach": {"items": ["cat.png", "dog.png"], "key": "@"}}
    last = {"id": "last", "tool": "list_directory", "args": {"path": "."}, "dependsOn": ["gate"]}
    file = written(tmp_path / "plan.json", {"steps": [loop, last]})
    name = str((await plan(environ, "start", file, "--id", "completed-1", "--json")).json["planId"])

    async def found() -> bool:
        return name in await offered(environ, completion.plan_ids, "completed-")

    await until(found, "the index knows the plan")

    async def asked() -> Any:
        return "gate[cat.png]" in await offered(environ, completion.step_ids, name, "")

    await until(asked, "the items ask")
    assert set(await offered(environ, completion.step_ids, name, "gate[")) >= {"gate[cat.png]", "gate[dog.png]"}
    assert await offered(environ, completion.step_ids, name, "la") == ["last"]
    shell = {"_PLAN_COMPLETE": "complete_bash", "COMP_WORDS": f"plan approve {name} gate[c", "COMP_CWORD": "3"}
    completed = await plan_process(environ | shell, "approve")
    assert completed.out.split() == ["gate[cat.png]"]
    assert (await plan(environ, "deny", name, "gate[*]")).code == 0
    await plan(environ, "watch", name)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "http://x"])
async def test_without_a_server_nothing_is_offered_and_nothing_is_said(address: str, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path / "state"), "TEMPORAL_ADDRESS": address}
    assert await offered(environ, completion.plan_ids, "") == []
    assert await offered(environ, completion.step_ids, "p", "") == []
    assert not list(tmp_path.rglob("*.log")), "no server was started for it"


async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    environ = {"HOME": str(tmp_path), "PLANS_STATE_DIR": str(tmp_path / "state")}
    environ["TEMPORAL_ADDRESS"] = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    began = time.monotonic()
    assert await offered(environ, completion.plan_ids, "") == []
    assert time.monotonic() - began < 20 * completion.SECONDS, "it does not wait for the time limit of a command"
    server.close()


def test_no_name_leaves_its_line() -> None:
    hostile = ["a\nrm", "a\x1b[31m", "ab", "b"]
    assert completion.fitting_names(hostile, "a") == ["ab"]


def test_a_completion_returns_as_other_commands_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends itself then, without interpreter teardown, which can crash the SDK's threads."""
    for name, value in {"_PLAN_COMPLETE": "complete_bash", "COMP_WORDS": "plan appr", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert run([]) == 0

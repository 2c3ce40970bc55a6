"""Attempts on a real server: what counts as one, what a cancel does, what a worker's death leaves."""

from __future__ import annotations

import asyncio
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

from plansurvive.activities.tools.shell import run_command
from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.plans.activity_io import Return
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import Retry
from plansurvive.runtime.server import Server
from tests.activities import one_step
from tests.activities.attempts import Attempts
from tests.activities.processes import alive, until
from tests.nightly import only_nightly

LINGERS = 1.3
"""Longer than the first heartbeat, so that the last one meets the client's throttle."""


@tool
def failing(path: str, context: ToolContext, retryable: bool = True, lingers: float = 0.0) -> None:
    """Write a line and fail.

    Args:
        path: Where the line goes.
        retryable: Whether another attempt may help.
        lingers: Seconds before it fails.
    """
    with (Path(context.workspace.root) / path).open("a") as file:
        file.write("tried\n")
    time.sleep(lingers)
    raise ToolError("NO_LUCK", "it failed", retryable=retryable)


async def outcome(handle: WorkflowHandle[Any, Return]) -> ApplicationError:
    """The tool's error, as the workflow sees it."""
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, ActivityError)
    assert isinstance(caught.value.cause.cause, ApplicationError)
    return caught.value.cause.cause


@pytest.mark.slow
@pytest.mark.parametrize("lingers", [0.0, only_nightly(LINGERS)])
async def test_a_failing_tool_is_tried_as_often_as_the_step_says(
    temporal_client: Client, queue: str, attempts: Attempts, lingers: float
) -> None:
    call = attempts.but(retry=Retry(attempts=3, delay=0.0)).call({"path": "log", "lingers": lingers})
    async with one_step.worker(temporal_client, queue, [failing], attempts.values, attempts.effects):
        error = await outcome(await one_step.start(temporal_client, queue, "failing", call))
    assert (attempts.workspace / "log").read_text() == "tried\n" * 3
    assert error.type == "NO_LUCK"
    assert error.message == "it failed"
    assert error.details[0]["attempt"] == 3


@pytest.mark.slow
async def test_an_error_that_cannot_get_better_is_tried_once(
    temporal_client: Client, queue: str, attempts: Attempts
) -> None:
    call = attempts.call({"path": "log", "retryable": False})
    async with one_step.worker(temporal_client, queue, [failing], attempts.values, attempts.effects):
        error = await outcome(await one_step.start(temporal_client, queue, "failing", call))
    assert error.non_retryable
    assert (attempts.workspace / "log").read_text() == "tried\n"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_cancelling_ends_a_command_and_all_it_started_before_the_step_is_cancelled(
    temporal_client: Client, queue: str, attempts: Attempts
) -> None:
    command = "sleep 300 & echo $! >> pids; (setsid sleep 300 & echo $! >> pids); echo ready > ready; sleep 300"
    async with one_step.worker(temporal_client, queue, [run_command], attempts.values, attempts.effects):
        handle = await one_step.start(temporal_client, queue, "run_command", attempts.call({"command": command}))
        await until(lambda: (attempts.workspace / "ready").exists())
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert alive(attempts.workspace) == []
    cause = caught.value.cause
    assert isinstance(cause.cause if isinstance(cause, ActivityError) else cause, CancelledError)


@pytest.mark.slow
async def test_the_death_of_a_worker_uses_up_no_attempt_and_leaves_no_process(
    temporal_client: Client, server: Server, queue: str, attempts: Attempts, state_dir: Path
) -> None:
    command = "echo try >> log; if [ $(wc -l < log) -lt 3 ]; then echo $$ >> pids; sleep 300; fi; exit 9"
    call = attempts.but(retry=Retry(attempts=1)).call({"command": command})
    handle = await one_step.start(temporal_client, queue, "run_command", call, heartbeat=4.0)
    for tries in (1, 2):
        process = await worker_process(server.address, queue, state_dir)
        await until(lambda: tries_in(attempts.workspace) == tries and bool(alive(attempts.workspace)))  # noqa: B023
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await until(lambda: not alive(attempts.workspace))
    async with one_step.worker(temporal_client, queue, [run_command], attempts.values, attempts.effects):
        error = await outcome(handle)
    assert (error.type, error.details[0]["attempt"]) == ("COMMAND_FAILED", 1)
    attempts_told = [(each["number"], each["code"]) for each in error.details[0]["attempts"]]
    assert attempts_told == [(1, "WORKER_LOST"), (1, "WORKER_LOST"), (1, "COMMAND_FAILED")]
    assert tries_in(attempts.workspace) == 3


async def test_a_worker_that_stops_hands_its_step_to_the_next_one(
    temporal_client: Client, queue: str, attempts: Attempts
) -> None:
    command = "echo try >> log; [ $(wc -l < log) -gt 1 ] || sleep 300; echo done"
    call = attempts.but(retry=Retry(attempts=1)).call({"command": command})
    handle = await one_step.start(temporal_client, queue, "run_command", call, heartbeat=5.0)
    async with one_step.worker(temporal_client, queue, [run_command], attempts.values, attempts.effects, grace=0.2):
        await until(lambda: tries_in(attempts.workspace) == 1)
    async with one_step.worker(temporal_client, queue, [run_command], attempts.values, attempts.effects):
        result = await handle.result()
    assert (result.value["stdout"], result.attempt) == ("done\n", 1)
    assert [(each.number, each.code) for each in result.attempts] == [(1, "WORKER_LOST")]


async def worker_process(address: str, queue: str, state_dir: Path) -> asyncio.subprocess.Process:
    """A worker in a process of its own, to be killed."""
    program = f"""
        import asyncio
        from pathlib import Path
        from temporalio.client import Client
        from temporalio.contrib.pydantic import pydantic_data_converter
        from plansurvive.activities.workspace.effect_log import Effects
        from plansurvive.activities.tools.shell import run_command
        from plansurvive.runtime.storage import LocalDirectory
        from plansurvive.runtime.value_store import ValueStore
        from tests.activities import one_step

        async def main():
            client = await Client.connect({address!r}, data_converter=pydantic_data_converter)
            values = ValueStore(LocalDirectory({str(state_dir)!r}))
            effects = Effects.at(Path({str(state_dir)!r}) / "effects")
            await one_step.worker(client, {queue!r}, [run_command], values, effects).run()

        asyncio.run(main())
    """
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(program), cwd=Path(__file__).parents[3]
    )


def tries_in(workspace: Path) -> int:
    """How often the command began."""
    log = workspace / "log"
    return log.read_text().count("\n") if log.exists() else 0

"""The terminals that an agent opens: each is a step of its workflow, a call of the tool `run_command`.

So a person or the policy decides about it, it runs in the sandbox of commands, and its output, files and end are
recorded as those of any command, with a line of its own in every view. A terminal that is released, or whose turn ends,
is ended.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from temporalio.client import Client

from plansurvive.activities.outputs.stored_output import Position, output
from plansurvive.plans.activity_io import STDERR, STDOUT, logs_of
from plansurvive.plans.execution.messages import LogsAsked
from plansurvive.plans.flow.ids import is_step_of
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.views.progress.logs import LoggedAttempt, LogsPage
from plansurvive.runtime.value_store import ValueStore

OUTPUT_BYTES = 1_000_000
"""What an agent gets of the output, from its end, where it sets no limit."""

TERMINALS = 4
"""Commands of one agent that run at a time: each is an update that waits, and the server takes ten of a workflow."""


@dataclass(frozen=True)
class End:
    """How a command has ended."""

    code: int | None
    problem: str = ""
    """Why it gave no exit code: `COMMAND_TIMEOUT: ...`."""


@dataclass
class Terminal:
    """One command of an agent."""

    step_id: str
    limit: int
    ends: asyncio.Task[End]

    @property
    def end(self) -> End | None:
        """How it has ended; None while it runs."""
        return self.ends.result() if self.ends.done() and not self.ends.cancelled() else None


def command_line(command: str, args: list[str] | None) -> str:
    """What `run_command` is given, and what a person reads."""
    return shlex.join([command, *args]) if args else command


async def end_of(answer: Mapping[str, Any], store: ValueStore) -> End:
    """How a command has ended, from what the workflow says of it."""
    value = answer.get("value")
    if answer.get("large"):
        value = await store.get(LargeValue.model_validate(answer["large"]))
    code = value.get("exitCode") if isinstance(value, dict) else None
    return End(code if isinstance(code, int) else None, str(answer.get("problem") or ""))


async def written(client: Client, workflow_id: str, step_id: str, store: ValueStore) -> bytes:
    """What a command has written so far, stdout and stderr in the order in which it came."""
    attempt = await _running(client, workflow_id, step_id) or await _ended(client, workflow_id, step_id)
    if attempt is None:
        return b""
    after: Position = {STDOUT: 0, STDERR: 0}
    return b"".join([piece.data async for piece in output(attempt, store, after)])


def last_of(data: bytes, limit: int) -> tuple[str, bool]:
    """The end of the output that fits, from the beginning of a character on; and whether anything is left out."""
    kept = data[-limit:] if limit else b""
    while kept and len(kept) < len(data) and kept[0] & 0xC0 == 0x80:
        kept = kept[1:]
    return kept.decode("utf-8", "replace"), len(kept) < len(data)


async def _running(client: Client, workflow_id: str, step_id: str) -> LoggedAttempt | None:
    found = await client.get_workflow_handle(workflow_id).describe()
    for pending in found.raw_description.pending_activities:
        if is_step_of(step_id, pending.activity_id):
            details: Any = {}
            with suppress(Exception):  # decoding alone: whatever a parser raises for the bytes of a payload
                [details] = await found.data_converter.decode(pending.heartbeat_details.payloads)
            return LoggedAttempt(logs=logs_of(details.get("logs") if isinstance(details, dict) else None))
    return None


async def _ended(client: Client, workflow_id: str, step_id: str) -> LoggedAttempt | None:
    asked = LogsAsked(step_id=step_id).model_dump(mode="json")
    page = LogsPage.model_validate(await client.get_workflow_handle(workflow_id).query("logs", asked))
    attempts = [each for step in page.steps for each in step.attempts]
    return attempts[-1] if attempts else None

"""The line from a turn to the workflow of its agent: which session there is, permissions, tasks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.coding_agents.model import (
    MAX_SHOWN,
    Answer,
    AskPermission,
    EndCommand,
    GivenDecision,
    ReportProgress,
    ReportSession,
    ReportTasks,
    RunCommand,
)
from plansurvive.plans.errors import Refused, ToolError
from plansurvive.plans.execution.messages import check_size
from plansurvive.runtime import updates

PATIENCE = timedelta(seconds=10)
UPDATE_SECONDS, UPDATE_BYTES = 600.0, 4 * MAX_SHOWN
"""What the workflow may take to accept an update on a machine that is busy, and the size of the largest one."""
QUESTIONS = 3
"""What is asked of people at a time; the rest waits its turn. The server takes ten updates of a workflow at a time, of
which commands that run, reports and people take some."""


@dataclass
class State:
    """The session as the workflow knows it when a turn begins."""

    session: str
    sent: bool
    """The request was sent, or may have been."""
    arrived: bool
    """It was."""
    process: int
    decided: list[str]
    """What was decided that the agent has not been told, in sentences."""


@dataclass
class Line:
    """Of one turn."""

    client: Client
    workflow_id: str
    process: int = field(default=0, init=False)
    """Number of this process of the agent."""
    _questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS), init=False)

    async def begin(self) -> State:
        """A process begins. Raises ToolError."""
        found = await self._update("coding_session", ReportSession())
        self.process = int(found["process"])
        sent, arrived = bool(found["sent"]), bool(found.get("arrived", True))
        return State(found["session"], sent, arrived, self.process, list(found["decided"]))

    async def report(self, session: str, *, loads: bool) -> None:
        """The agent has named its session, and the request is about to be sent."""
        await self._update("coding_session", ReportSession(session=session, loads=loads))

    async def ask(self, question: AskPermission) -> Answer:
        """Wait for the decision about a call, for as long as the question says."""
        async with self._questions:
            found = await self._update("coding_permission", question)
        answer: Answer = found["answer"]
        if answer != "held":
            await self.given(found["stepId"])
        return answer

    async def command(self, command: RunCommand) -> dict[str, Any]:
        """What the workflow says of a command that is to run, or runs."""
        if command.until == "ended":
            return await self._update("coding_command", command)
        async with self._questions:
            return await self._update("coding_command", command)

    async def end_command(self, step_id: str) -> None:
        """A command is needed no longer. One that has ended takes no harm."""
        await self._signal("coding_command_end", EndCommand(step_id=step_id))

    async def given(self, step_id: str) -> None:
        """The agent is about to be given how a command has ended."""
        await self._signal("coding_given", GivenDecision(step_id=step_id))

    async def progress(self, progress: ReportProgress) -> bool:
        """Report what the agent has done. Returns whether it may continue. A report that is lost is left out."""
        try:
            return bool((await self._update("coding_progress", progress))["go"])
        except ToolError:
            return True

    async def tasks(self, tasks: ReportTasks) -> None:
        """The agent has a new list of tasks. One that does not arrive is followed by another."""
        with suppress(ToolError):
            await self._signal("coding_tasks", tasks)

    async def _signal(self, name: str, message: Any) -> None:
        """Send a signal; the server has it when this returns. Raises ToolError."""
        handle = self.client.get_workflow_handle(self.workflow_id)
        try:
            await handle.signal(name, message.model_dump(mode="json"), rpc_timeout=PATIENCE)
        except RPCError as error:
            raise _unreachable(error) from None

    async def _update(self, name: str, message: Any) -> dict[str, Any]:
        """Send an update, under one id as often as it takes, and wait for its answer. Raises ToolError."""
        data = message.model_dump(mode="json", exclude_defaults=True)

        async def why_not(_: str, *, is_late: bool) -> ToolError | None:
            text = f"its workflow has not taken '{name}' within {UPDATE_SECONDS:g} s"
            return ToolError("AGENT_LOST", text, retryable=True) if is_late else None

        try:
            check_size(data, UPDATE_BYTES)
            return await updates.send(self.client, self.workflow_id, name, data, UPDATE_SECONDS, why_not)
        except RPCError as error:
            raise _unreachable(error) from None
        except Refused as error:
            raise ToolError(error.code, error.message) from None
        except WorkflowUpdateFailedError as error:
            why, lasts = error.cause, isinstance(error.cause, ApplicationError)
            text = f"its workflow does not take '{name}': {getattr(why, 'message', why)}"
            raise ToolError("AGENT_LOST", text, retryable=not lasts) from None


def _unreachable(error: RPCError) -> ToolError:
    is_gone = error.status is RPCStatusCode.NOT_FOUND
    return ToolError("AGENT_LOST", f"its workflow cannot be reached: {error.message}", retryable=not is_gone)

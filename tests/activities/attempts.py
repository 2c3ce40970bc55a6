"""Runs one attempt of a tool as a worker would, without a server: real files, real processes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.attempt.run import tool_activity
from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.file_stamps import Stamp
from plansurvive.plans.model import Retry
from plansurvive.runtime.value_store import ValueStore


@dataclass(frozen=True)
class Attempts:
    """How the next attempts are made. `replace` what a test wants otherwise."""

    workspace: Path
    values: ValueStore
    effects: Effects
    site: ToolEnvironment = field(default_factory=ToolEnvironment)
    approved: bool = True
    run_id: str = "plan-p"
    step: str = ""
    """Its id, and so the key of its calls; without one, every call has a key of its own."""
    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    notes_seen: Sequence[str] = ()
    owns: Sequence[str] = ()
    drafted: bool = False
    repeatable: bool = True
    again: bool = False
    errors: int = 0
    timeout: float = 30.0
    retry: Retry = field(default_factory=Retry)
    beats: list[dict[str, Any]] = field(default_factory=list)

    def but(self, **changes: Any) -> Attempts:
        """The same with something changed."""
        return replace(self, **changes)

    def call(self, args: dict[str, Any]) -> Call:
        """What the workflow would send."""
        return Call(
            args=args,
            plan_id="p",
            step_id="s",
            key=f"{self.run_id}/{self.step or uuid.uuid4().hex}",
            workspace=str(self.workspace),
            timeout=self.timeout,
            retry=self.retry,
            approved=self.approved,
            repeatable=self.repeatable,
            stamps=dict(self.stamps),
            notes_seen=list(self.notes_seen),
            owns=list(self.owns),
            drafted=self.drafted,
        )

    def environment(self) -> ActivityEnvironment:
        """Where an attempt runs; its heartbeats are kept."""
        environment = ActivityEnvironment()
        attempt = 2 if self.again else 1
        details = [{"errors": self.errors}] if self.errors else []
        environment.info = replace(environment.info, attempt=attempt, heartbeat_details=details)
        environment.on_heartbeat = self.beats.append
        return environment

    def context(self, tool: str = "") -> ToolContext:
        """What a tool is given by an attempt."""
        return ToolContext(self.call({}), Workspace(str(self.workspace)), self.effects, tool, self.again)

    async def run(self, tool: str | Tool, call: Call | None = None, /, **args: Any) -> Return:
        """What the attempt gave back."""
        chosen = builtin_tools()[tool] if isinstance(tool, str) else tool
        activity = tool_activity(chosen, self.values, self.effects, self.site)
        result: Return = await self.environment().run(activity, call or self.call(args))
        return result

    async def value(self, tool: str | Tool, /, **args: Any) -> Any:
        """The value it gave back, wherever it is kept."""
        result = await self.run(tool, **args)
        return await self.values.get(result.large) if result.large else result.value

    async def error(self, tool: str | Tool, /, **args: Any) -> ApplicationError:
        """The error it ended with."""
        with pytest.raises(ApplicationError) as caught:
            await self.run(tool, **args)
        return caught.value

    async def code(self, tool: str | Tool, /, **args: Any) -> str | None:
        """The code of that error."""
        return (await self.error(tool, **args)).type

"""The check of a plan waits for servers of tools that it needs, and for no others, while their worker starts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.activities.lifecycle.check_plan import PlanChecker
from plansurvive.activities.lifecycle.offered import KnownSpecs
from plansurvive.features.tool_servers.in_worker import Starting
from plansurvive.features.tool_servers.server_tools import ServerTools
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.plans.activity_io import CheckRequest, Facts
from plansurvive.plans.model import Plan
from plansurvive.runtime.settings import Settings
from tests.features.tool_servers.serving import Serving, raw
from tests.plans.building import TOOLS

KEEP = {"id": "k", "tool": "notes.keep"}
AGENT = {"id": "a", "tool": "agent", "args": {"objective": "x", "tools": ["notes.keep", "read_file"]}}
UNDO = {"id": "u", "tool": "sleep", "args": {"seconds": 1}, "undo": {"tool": "notes.keep"}}
OTHERS = {"id": "o", "tool": "sleep", "args": {"seconds": 1}}


@dataclass(frozen=True)
class Check:
    """The check of a plan, as a worker with tool servers makes it."""

    servers: ServerTools
    seconds: float

    async def check_plan(self, request: CheckRequest) -> Facts:
        """Wait for the servers that the plan needs, then check it."""
        await Starting(self.servers, self.seconds).waited_for(request)
        return PlanChecker(KnownSpecs(TOOLS, [self.servers], lambda spec: spec)).check_plan(request)


@asynccontextmanager
async def checking(serving: Serving, seconds: float, **servers: ToolServer) -> AsyncIterator[Check]:
    """A check of a worker that has just started, which waits so many seconds."""
    async with serving.servers(servers) as running:
        settings = Settings.read({"PLANS_STATE_DIR": str(serving.place / "state")})
        tools = ServerTools(running, settings)
        await tools.begin(patience=0)
        yield Check(tools, seconds)


def request(place: Path, *steps: dict[str, Any]) -> CheckRequest:
    """A check of a plan with these steps; of none, as for an agent."""
    return CheckRequest(plan=Plan.model_validate({"steps": steps}) if steps else None, workspace=str(place))


@pytest.mark.parametrize(
    ("steps", "waits"),
    [
        ((KEEP,), "notes"),
        ((AGENT,), "notes"),
        ((UNDO,), "notes"),
        (({"id": "b", "steps": [OTHERS, {**KEEP, "dependsOn": ["o"]}]},), "notes"),
        ((), "notes, mail"),
    ],
)
async def test_it_is_tried_again_as_long_as_a_server_that_it_needs_starts(
    serving: Serving, tmp_path: Path, steps: tuple[dict[str, Any], ...], waits: str
) -> None:
    silent = raw("--silent")
    async with checking(serving, 0.05, notes=silent, mail=silent) as check:
        with pytest.raises(ApplicationError, match=f"^MCP_UNAVAILABLE: tool server {waits} has not") as raised:
            await check.check_plan(request(tmp_path, *steps))
        assert not raised.value.non_retryable


async def test_a_plan_that_needs_no_such_server_does_not_wait(serving: Serving, tmp_path: Path) -> None:
    async with checking(serving, 30, notes=raw("--silent")) as check:
        facts = await asyncio.wait_for(check.check_plan(request(tmp_path, OTHERS)), 20)
        assert facts.problems == []


async def test_a_server_that_cannot_be_used_is_not_waited_for_any_longer(serving: Serving, tmp_path: Path) -> None:
    async with checking(serving, 30, notes=raw("--dies"), mail=raw("--silent")) as check:
        facts: Facts = await asyncio.wait_for(check.check_plan(request(tmp_path, KEEP)), 20)
        assert [each.code for each in facts.problems] == ["UNKNOWN_TOOL"]
        assert check.servers.unlisted == ["mail"]

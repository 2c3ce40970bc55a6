"""The tool servers of a worker: its connections, as long as it runs; their tools; and a check that waits for them.

The check of a plan waits for servers that it needs and that still start. Of a server that was listed before, the
listing is known, and nothing waits for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from plansurvive.activities.feature import InWorker, MoreTools
from plansurvive.activities.values.redaction import Seen
from plansurvive.features.tool_servers.server_tools import START_SECONDS, ServerTools, tool_servers
from plansurvive.features.tool_servers.servers import read_servers
from plansurvive.plans.activity_io import CheckRequest
from plansurvive.plans.definition.checks.validation import calls_of
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.model import Plan, Step
from plansurvive.runtime.settings import Settings

WAIT_SECONDS = 50.0
"""Less than an attempt of the check may take (`workflows.policies.CHECK`); the next one waits on."""


class Worker(InWorker):
    """The servers of a worker's mcp.toml."""

    feature = "tool_servers"

    def __init__(
        self, client: Client, settings: Settings, fault: Callable[[str], None], patience: float = START_SECONDS
    ) -> None:
        """`patience`: seconds that the worker waits for its servers as it starts. Raises SettingError."""
        super().__init__(client, settings, fault)
        self.patience = patience
        self.served: ServerTools | None = None

    @asynccontextmanager
    async def running(
        self,
        own: Collection[str],
        say: Callable[[str], None],
        masked: Sequence[Seen],
        *,
        first: bool,  # noqa: ARG002
    ) -> AsyncIterator[None]:
        """Lists the servers, and says which ones and which tools are missing; their connections end with the worker."""
        if not read_servers(self.settings):
            yield
            return
        async with tool_servers(self.settings, self.client.service_client.config.target_host, masked=masked) as servers:
            self.served = ServerTools(servers, self.settings, own)
            await self.served.begin(self.patience)
            for name in self.served.unlisted:
                say(f"Tool server {name}: no answer within {self.patience:g} s; plans that use its tools wait for it")
            for trouble in self.served.troubles:
                say(f"Tool server {trouble}")
            try:
                yield
            finally:
                self.served = None

    def tools(self) -> MoreTools | None:
        """Those of all servers; None if mcp.toml names none."""
        return self.served

    def before_check(self) -> Callable[[CheckRequest], Awaitable[None]] | None:
        """Waits for the servers that a plan needs; None if mcp.toml names none."""
        return None if self.served is None else Starting(self.served).waited_for


class Starting:
    """The servers that had not answered yet when the worker started."""

    def __init__(self, served: ServerTools, seconds: float = WAIT_SECONDS) -> None:
        self._served, self._seconds = served, seconds

    async def waited_for(self, request: CheckRequest) -> None:
        """Raises ApplicationError MCP_UNAVAILABLE, to be retried, if a server whose tools are needed takes longer."""
        if needed := self._needed(request):
            await self._served.first_look(needed, self._seconds)
            if missing := self._needed(request):
                text = f"tool server {', '.join(missing)} has not answered since this worker started; asked again"
                raise ApplicationError(text, type="MCP_UNAVAILABLE")

    def _needed(self, request: CheckRequest) -> list[str]:
        """The servers to wait for; all that still start where no plan says which tools it needs, as for an agent."""
        starting = self._served.unlisted
        named = _servers(request.plan) if starting and request.plan else set()
        return [name for name in starting if request.plan is None or name in named]


def _servers(plan: Plan) -> set[str]:
    """What the names of the tools of a plan begin with, as do those of servers: `server.tool`."""
    steps = [step for _, step in walk(plan)]
    tools = [call.tool for step in steps for call in calls_of(step)] + [name for step in steps for name in _given(step)]
    return {name.partition(".")[0] for name in tools if "." in name}


def _given(step: Step) -> list[str]:
    """The tools that a step gives to an agent, as far as they are named."""
    named = step.args.get("tools")
    return [each for each in named if isinstance(each, str)] if isinstance(named, list) else []


IN_WORKER = Worker

"""Whose server it is: settings, how it reaches Temporal, who speaks, what an agent may do.

A server on stdio has one caller, the person who started it, and connects as `plan start` does: it finds the server,
starts the embedded one if there is none, and makes sure of a worker. The web page mounts the same server and passes in
its own connection and who makes a request (`Host.connecting`, `Host.calling`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from mcp.server.mcpserver import Context

from plansurvive.apps.mcp.common.rules import Deciding
from plansurvive.client.requests.connected import Connected, with_worker
from plansurvive.client.watchers.hub import Hub
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.messages import Via
from plansurvive.runtime import server as embedded
from plansurvive.runtime.connect import Connection, Origin, reach
from plansurvive.runtime.settings import Settings

if TYPE_CHECKING:
    from plansurvive.client.access.people import Starter  # the page's: its libraries are those of another extra

LOG = logging.getLogger(__name__)

Request = Context[Any, Any]
"""The context of one MCP request, as tools, resources and prompts receive it."""


class Author(TypedDict):
    """The author of a message to a plan, as the functions of `client.runs` take it."""

    by: str
    via: Via
    verified: bool


class Forbidden(PlanError):
    """The caller may not do this."""

    code = "FORBIDDEN"


@dataclass(frozen=True)
class Caller:
    """For whom an MCP client speaks, and what that person may do."""

    name: str
    verified: bool = False
    """Whether a login vouches for the name."""
    is_remote: bool = False
    """Whether the client may be on another machine: paths and commands of this one mean nothing to it."""
    may_operate: bool = True
    """Start, edit, cancel, undo."""
    may_decide: bool = True
    """Approve, deny, answer: the person, where the person is asked; the agent, only if the server allows it."""

    @property
    def author(self) -> Author:
        """Who speaks in a message to a plan."""
        return Author(by=self.name, via="mcp", verified=self.verified)

    @property
    def starter(self) -> Starter:
        """Who starts a plan, as its options say it."""
        return {"by": self.name, "vouched": self.verified or None}

    def to_operate(self) -> Caller:
        """The caller, who changes something. Raises Forbidden."""
        if not self.may_operate:
            raise Forbidden(f"{self.name} may see plans, not start or change them; ask for the role operator")
        return self


@dataclass
class Host:
    """One server. `environ`: the environment of the command, for what starts servers and workers."""

    settings: Settings
    environ: Mapping[str, str]
    user: str
    """The name of the person who started the server."""
    may_approve: bool = False
    """Whether agents may approve, deny, answer and send events: `plan mcp --may-approve`."""
    templates: tuple[str, ...] = ()
    """Names of saved templates that are offered as tools of their own."""
    deciding: Deciding = "here"
    """What people may decide when the agent's client asks them: `plan mcp --decide`."""
    starting: set[str] = field(default_factory=lambda: {"plan_start", "plan_make"})
    """Tools that start a plan and name it in `planId`: a client that takes tasks gets one instead of their answer."""
    tasks_only: frozenset[str] = frozenset()
    """Those of them that are refused to other clients."""
    hub: Hub = field(default_factory=Hub)
    """Watches plans for everybody who looks at them; the web page passes in its own."""
    calling: Callable[[Request], Caller] | None = None
    """Who makes a request; none: the person who started the server, on this machine."""
    connecting: Callable[[], Awaitable[Connection]] | None = None
    """How to connect; none: as `plan start` does."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _connection: Connection | None = None

    def caller(self, request: Request) -> Caller:
        """For whom a request is made."""
        return self.calling(request) if self.calling else Caller(self.user)

    async def connected(self, *, worker: bool = True, starts: bool = False) -> Connected:
        """The connection, as a command has it. Raises NotConnected, WorkerFailed, SettingError.

        `worker`: an answer is needed from a plan; `starts`: work is started, by a worker with these settings.
        """
        async with self._lock:
            if self._connection is None or self._is_lost(self._connection):
                self._connection = await (
                    self.connecting() if self.connecting else reach(self.settings, LOG.info, revives=True)
                )
            return await with_worker(self.settings, self._connection, needed=worker, starts=starts)

    def _is_lost(self, connection: Connection) -> bool:
        """Whether the server on this machine has ended, so that a command would start or find another one."""
        if self.connecting or connection.origin is Origin.CONFIGURED:
            return False
        if connection.origin is Origin.LOCAL:
            return not embedded.listens("localhost", embedded.PORT)
        own = embedded.recorded(self.settings)
        return own is None or not own.accepts()

"""The connections of one worker to the servers of mcp.toml.

A connection is opened when it is first needed and kept: one for each server, and for each workspace of a server that is
granted access to workspaces. One that ended is opened again by the next call, after a pause that grows with every
failure. There are at most `MOST`; those that nobody used for `IDLE` seconds are closed. All end with the worker.

A process that served two workspaces would carry from one to the other what it read. Rejected: one that sees the parent
of all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.values.errors import bounded, one_line
from plansurvive.activities.values.redaction import Secrets
from plansurvive.features.tool_servers.calling import called
from plansurvive.features.tool_servers.flow import flooded, most_of_message
from plansurvive.features.tool_servers.log import ServerLog
from plansurvive.features.tool_servers.program import Site, hint_of, start, unavailable
from plansurvive.features.tool_servers.server_connection import ANSWER_SECONDS, Connection, Wire
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.runtime.base.extras import install_line

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.types import Tool

MOST = 32
"""Maximum number of connections of a worker."""
IDLE = 600.0
"""Seconds without a call after which a connection is closed."""
SWEEP = 30.0
PAUSES = (0.0, 0.5, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds between the attempts to connect to a server that could not be reached."""
MAX_PAGES, MAX_TOOLS = 100, 1_000

Key = tuple[str, str]
"""Name of a server, and a workspace; empty: none."""


@dataclass
class Trouble:
    """The failures of a server in a row, and when to try again."""

    failures: int = 0
    until: float = 0.0


class ToolServers:
    """The tool servers of a worker. A context manager: at its end, all connections are closed."""

    def __init__(
        self,
        servers: Mapping[str, ToolServer],
        site: Site,
        state: Path,
        secrets: Secrets | None = None,
        idle: float = IDLE,
        answer: float = ANSWER_SECONDS,
    ) -> None:
        """`idle`, `answer`: seconds, see `IDLE` and `ANSWER_SECONDS`."""
        self.servers = servers
        self._site, self._state, self._idle, self._answer = site, state, idle, answer
        self._secrets = secrets or Secrets([])
        self._open: dict[Key, Connection] = {}
        self._locks: dict[Key, asyncio.Lock] = {}
        self._trouble: dict[Key, Trouble] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.Task[None] | None = None

    @property
    def open(self) -> int:
        """Number of open connections."""
        return sum(not each.is_ending for each in self._open.values())

    async def __aenter__(self) -> Self:
        if self.servers:
            self._sweep = asyncio.create_task(self._close_idle())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        closing = [*self._tasks, *(each.close() for each in self._open.values())]
        await asyncio.gather(*closing, return_exceptions=True)
        self._open.clear()

    async def list_tools(self, server: str, workspace: str = "") -> list[Tool]:
        """The tools that a server has and mcp.toml lets plans use, in its order.

        Raises ToolError: MCP_UNAVAILABLE, MCP_LIMIT for more than can be right, MCP_PROTOCOL, MCP_TIMEOUT.
        """
        asked = self._of(server)
        async with self._connected(server, workspace) as connection:
            try:
                async with asyncio.timeout(asked.timeout):
                    found = await _listed(server, connection)
            except TimeoutError:
                self._in_background(connection.close())
                text = f"it did not list its tools within {asked.timeout:g} seconds (timeout)"
                raise unavailable(server, text, retryable=True) from None
            except Exception as error:
                raise self._not_usable(server, connection, error) from None
        return [tool for tool in found if asked.offers(tool.name)]

    async def call(self, server: str, tool: str, args: dict[str, Any], *, context: ToolContext) -> Any:
        """The value of a call, see `features.tool_servers.results`.

        Raises ToolError: MCP_UNAVAILABLE (nothing was sent), MCP_NO_TOOL, MCP_ERROR (the tool reports one), MCP_LIMIT,
        MCP_PROTOCOL, MCP_TIMEOUT, MCP_NEEDS_INPUT, and if the server went away MCP_LOST or, for a call that must not be
        repeated, OUTCOME_UNKNOWN.
        """
        asked = self._of(server)
        if not asked.offers(tool):
            raise ToolError("MCP_NO_TOOL", f"mcp.toml keeps plans from using {server}.{tool} (its `tools` and `deny`)")
        if asked.is_local:
            context.level = self._site.sandbox.level
        try:
            return await self._called(server, tool, args, context)
        except ToolError as error:
            if error.code != "MCP_UNAVAILABLE" or not error.retryable:
                raise
        return await self._called(server, tool, args, context)  # nothing was sent: a new connection may do

    async def _called(self, name: str, tool: str, args: dict[str, Any], context: ToolContext) -> Any:
        async with self._connected(name, context.workspace.root) as connection:
            try:
                return await called(connection, name, self._of(name), tool, args, context)
            except asyncio.CancelledError:
                self._in_background(connection.close_unless_alive(self._answer))
                raise
            except ToolError as error:
                if error.code == "MCP_UNAVAILABLE":
                    await connection.close()
                elif error.code in ("MCP_TIMEOUT", "MCP_LOST", "OUTCOME_UNKNOWN"):
                    self._in_background(connection.close_unless_alive(self._answer))
                raise self._masked(error) from None

    def _of(self, server: str) -> ToolServer:
        try:
            return self.servers[server]
        except KeyError:
            raise unavailable(server, "the worker's file has no such server; add it, or correct its name") from None

    @asynccontextmanager
    async def _connected(self, name: str, workspace: str) -> AsyncIterator[Connection]:
        """An open connection. Raises ToolError MCP_UNAVAILABLE, or why the server was disconnected while it began."""
        server = self._of(name)
        key = (name, workspace if server.workspace != "none" else "")
        async with self._locks.setdefault(key, asyncio.Lock()):
            connection = await self._begun(key, server)
            connection.calls += 1
        try:
            await self._wait_for(connection, key)
            yield connection
        finally:
            connection.release()

    async def _wait_for(self, connection: Connection, key: Key) -> None:
        """Wait until the server has answered."""
        try:
            await connection.client()
        except Exception as error:
            if self._open.get(key) is connection:
                del self._open[key]
                self._note_failure(key)
                self._in_background(connection.close())
            raise self._not_usable(key[0], connection, error, hint_of(self._of(key[0]), key[1])) from None
        self._trouble.pop(key, None)

    async def _begun(self, key: Key, server: ToolServer) -> Connection:
        connection = self._open.get(key)
        if connection is not None and connection.is_ending:
            await connection.close()
            connection = None
        if connection is None:
            await self._pause(key)
            await self._make_room()
            connection = Connection(partial(self._wire, key[0], key[1]), key[1], server.start_timeout)
            self._open[key] = connection
        return connection

    async def _wire(self, name: str, workspace: str) -> Wire:
        server = self._of(name)
        if not server.is_local:
            from plansurvive.features.tool_servers.tokens import auth_for
            from plansurvive.features.tool_servers.web import Web

            return Web(name, server, self._site.addresses, auth_for(name, server, self._site, self._state))
        from plansurvive.features.tool_servers.pipes import Pipes

        log = ServerLog(self._state, name, self._secrets)
        log.note(f"started{f' for {workspace}' if workspace else ''}")
        running = await start(name, server, workspace, self._site)
        return Pipes(name, running, log, most_of_message(server.max_result))

    async def _pause(self, key: Key) -> None:
        """Wait until a server that failed may be tried again."""
        trouble = self._trouble.get(key)
        if trouble is not None:
            await asyncio.sleep(max(0.0, trouble.until - asyncio.get_running_loop().time()))

    def _note_failure(self, key: Key) -> None:
        trouble = self._trouble.setdefault(key, Trouble())
        trouble.failures += 1
        pause = PAUSES[min(trouble.failures, len(PAUSES) - 1)]
        trouble.until = asyncio.get_running_loop().time() + pause

    async def _make_room(self) -> None:
        """Close what has ended, and if there are too many connections the one unused for longest."""
        for key in [key for key, each in self._open.items() if each.over.is_set()]:
            del self._open[key]
        unused = sorted((each.used, key) for key, each in self._open.items() if not each.calls)
        if len(self._open) >= MOST:
            if not unused:
                text = f"the worker has {MOST} connections to tool servers, and all are in use"
                raise ToolError("MCP_UNAVAILABLE", f"{text}; the call is tried again", retryable=True)
            await self._open.pop(unused[0][1]).close()

    async def _close_idle(self) -> None:
        while True:
            await asyncio.sleep(min(SWEEP, self._idle))
            now = asyncio.get_running_loop().time()
            idle = [key for key, each in self._open.items() if not each.calls and now - each.used >= self._idle]
            for key in idle:
                await self._open.pop(key).close()

    def _not_usable(self, name: str, connection: Connection, error: Exception, hint: str = "") -> ToolError:
        """Why nothing could be asked of a server. `hint`: what to do, if it says nothing itself."""
        if connection.problem is not None:
            return connection.problem
        if isinstance(error, ToolError):
            return self._masked(error)
        words = connection.last_words()
        last = f"; the last it printed was: {words}" if words else ""
        said = error.message if isinstance(error, PlanError) else str(error) or type(error).__name__
        if isinstance(error, ModuleNotFoundError):  # the library of the extra
            hint = f"; install it and start the worker again; run: {install_line('plansurvive[mcp]')}"
        text = f"it cannot be used: {bounded(one_line(said), 1_000)}{last}{hint}"
        return unavailable(name, self._secrets.out_of(text), retryable=True)

    def _masked(self, error: ToolError) -> ToolError:
        return ToolError(
            error.code, self._secrets.out_of(error.message), retryable=error.retryable, retry_after=error.retry_after
        )

    def _in_background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _listed(name: str, connection: Connection) -> list[Tool]:
    client, cursor = await connection.client(), None
    found: list[Tool] = []
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if len(found) > MAX_TOOLS or (cursor and cursor in seen):
            break
        if not cursor:
            return found
        seen.add(cursor)
    raise flooded(name, f"a list of tools without end (more than {MAX_TOOLS:,} tools or {MAX_PAGES} pages)")

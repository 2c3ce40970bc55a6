"""The tools of a worker's servers: listed at its start, looked at again in each attempt, and called.

One activity serves them all, whatever their names, so that a tool which a server gets later needs no other worker. Each
attempt compares the tool as its server lists it now with the definition that its call was decided on. If they differ,
nothing is called (TOOL_CHANGED), and the workflow learns what the tool is now.

Each attempt lists its server, as one that wants to pass something off need not send `tools/list_changed`. Hints of a
server never loosen: only `destructiveHint` counts, against the operator's `never`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel

from plansurvive.activities.attempt.environment import sandbox_of
from plansurvive.activities.feature import MoreTools
from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.network.own_servers import own_servers
from plansurvive.activities.tools.tool import Tool, ToolContext
from plansurvive.activities.values.redaction import Secrets, Seen
from plansurvive.features.tool_servers.connections import ToolServers
from plansurvive.features.tool_servers.listed_tools import Listing, listing_of
from plansurvive.features.tool_servers.listings import config_of, read_listings, terms_of, write_listing
from plansurvive.features.tool_servers.model import ChangedTool
from plansurvive.features.tool_servers.program import Site
from plansurvive.features.tool_servers.rules import TOOL_CHANGED
from plansurvive.features.tool_servers.servers import file_of, read_servers, secrets_in
from plansurvive.plans.activity_io import Call
from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings

START_SECONDS = 10.0
"""Seconds that a worker's start waits for its servers; those that take longer are listed meanwhile."""


WRITTEN_AGAIN = timedelta(hours=1)
"""How often a listing that stays the same is stored again, as each attempt gets one."""


class ServerTools(MoreTools):
    """What the servers of a worker offer now."""

    def __init__(self, servers: ToolServers, settings: Settings, taken: Collection[str] = ()) -> None:
        """`taken`: names of the worker's own tools, which no server's tool gets."""
        state, self._workspace = settings.state_dir, str(settings.workspace or "")
        self.servers, self._state, self._taken = servers, state, frozenset(taken)
        self._earlier: dict[str, ToolSpec] = {}
        self._written: dict[str, datetime] = {}
        self._first: dict[str, asyncio.Task[None]] = {}
        self.listings: Mapping[str, Listing] = read_listings(state, servers.servers)

    @property
    def specs(self) -> dict[str, ToolSpec]:
        """The tools by name."""
        found = (spec for listing in self.listings.values() for spec in listing.tools)
        return {spec.name: spec for spec in found if spec.name not in self._taken}

    @property
    def earlier(self) -> Mapping[str, ToolSpec]:
        """All that were ever listed."""
        return self._earlier

    async def begin(self, patience: float = START_SECONDS) -> None:
        """List all servers, as a worker starts. None of them can keep it from starting: it waits `patience` seconds."""
        self._first = {name: asyncio.create_task(self._refresh(name)) for name in self.servers.servers}
        await self.first_look(self._first, patience)

    @property
    def unlisted(self) -> list[str]:
        """The servers whose tools are not known yet, as this worker has just started and they have not answered."""
        return [name for name, look in self._first.items() if not look.done() and name not in self.listings]

    async def first_look(self, names: Collection[str], seconds: float) -> None:
        """Wait until these servers have been listed, or could not be, since the worker started; at most so long."""
        await asyncio.wait([self._first[name] for name in names], timeout=seconds)

    @property
    def troubles(self) -> list[str]:
        """Why tools of servers are missing or may be out of date, a sentence for each server and each tool."""
        found = [f"{name}: {each.error}" for name, each in self.listings.items() if each.error]
        left_out = [
            f"{name}: its tool {tool} is left out: {why}"
            for name, each in self.listings.items()
            for tool, why in each.left_out.items()
        ]
        return found + left_out

    async def refresh(self, names: Collection[str] | None = None) -> None:
        """List all servers, or those named, at the same time. One that does not answer keeps its last listing."""
        chosen = [name for name in self.servers.servers if names is None or name in names]
        await asyncio.gather(*(self._refresh(name) for name in chosen))

    async def live(self, server: str, workspace: str) -> dict[str, ToolSpec]:
        """The tools of one server as it lists them now. Raises ToolError as `ToolServers.list_tools`."""
        return dict((await self._listed(server, workspace)).by_name)

    def tool(self, name: str) -> Tool | None:
        """The tool of a name that begins like a server's; None for any other name."""
        server = name.partition(".")[0]
        if "." not in name or server not in self.servers.servers:
            return None
        spec = self.specs.get(name)
        unknown = {"name": name, "description": "", "args_schema": {"type": "object"}, "server": server}
        return ServerTool.of(spec or ToolSpec.model_validate(unknown), self)

    async def _refresh(self, name: str) -> None:
        try:
            await self._listed(name, "")
        except PlanError as error:
            if self._workspace and self.servers.servers[name].workspace != "none":
                with suppress(PlanError):  # such as one for a repository, which its own directory is not
                    await self._listed(name, self._workspace)
                    return
            last = self.listings.get(name)
            now = datetime.now(UTC)
            failed = {"error": error.message[:2_000], "tried": now}
            empty = Listing(server=name, config=config_of(self.servers.servers[name]), time=now)
            self._keep((last or empty).model_copy(update=failed))

    async def _listed(self, name: str, workspace: str) -> Listing:
        tools = await self.servers.list_tools(name, workspace)
        server = self.servers.servers[name]
        listing = listing_of(
            name,
            [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
            datetime.now(UTC),
            terms=terms_of(server),
            config=config_of(server),
            offers=server.offers,
            taken=self._taken,
        )
        self._keep(listing)
        return listing

    def _keep(self, listing: Listing) -> None:
        last = self.listings.get(listing.server)
        self._earlier |= listing.by_name
        self.listings = {**self.listings, listing.server: listing}
        same, written = {"time", "tried"}, self._written.get(listing.server)
        is_due = written is None or listing.time - written > WRITTEN_AGAIN
        if is_due or last is None or last.model_dump(exclude=same) != listing.model_dump(exclude=same):
            self._written[listing.server] = listing.time
            with suppress(OSError):  # a full disk: the worker has the listing, commands have an older one
                write_listing(self._state, listing)


def tool_servers(
    settings: Settings, temporal: str = "", environ: Mapping[str, str] = os.environ, masked: Sequence[Seen] = ()
) -> ToolServers:
    """The servers of mcp.toml, none of them started yet. Raises SettingError for a bad mcp.toml.

    `temporal`: HOST:PORT of the server that the worker is connected to, which no server of tools may lead to. `masked`:
    what features have masked in texts.
    """
    from plansurvive.activities.tools.registry import source_files  # lazily, as it loads every tool

    servers, directory = read_servers(settings), file_of(settings).parent
    names = ProtectedNames(settings.protected, source_files(settings.tools))
    addresses = AddressPolicy.of(settings.http_allow, partial(own_servers, settings, temporal))
    site = Site(sandbox_of(settings), names, settings.cache_dir, directory, environ, addresses)
    secrets = Secrets(secrets_in(servers, directory, environ), masked)
    return ToolServers(servers, site, settings.state_dir, secrets)


class _NoModel(BaseModel):
    """In place of the model of a function's arguments: a server's are checked by its schema."""


@dataclass(frozen=True)
class ServerTool(Tool):
    """A tool of a server. Its function takes the arguments as they are."""

    of_servers: ServerTools = field(kw_only=True)

    @classmethod
    def of(cls, spec: ToolSpec, servers: ServerTools) -> ServerTool:
        """The tool with this spec."""
        server = servers.servers.servers[spec.server]

        async def call(args: dict[str, Any], context: ToolContext) -> Any:
            return await servers.servers.call(spec.server, spec.own_name, args, context=context)

        sees_files = server.is_local and server.workspace == "write"
        return cls(spec, call, _NoModel, touches_files=sees_files, of_servers=servers)

    def keywords(self, args: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """The arguments, which were checked against the schema."""
        return {"args": dict(args), "context": context}

    async def current(self, context: ToolContext) -> Tool:
        """The tool as its server lists it now. Raises TOOL_CHANGED if the call was decided on for another one."""
        found = (await self.of_servers.live(self.spec.server, context.workspace.root)).get(self.spec.name)
        if found is None:
            text = f"server '{self.spec.server}' does not have the tool {self.spec.name} any more; `plan tools` lists"
            raise ToolError("MCP_NO_TOOL", f"{text} what there is")
        if found.definition != context.call.definition:
            context.left[ChangedTool.feature] = ChangedTool(tool=found)
            text = f"{self.spec.name} is not as it was when this call was decided on"
            raise ToolError(TOOL_CHANGED, text + _unfit(found, context.call))
        return ServerTool.of(found, self.of_servers)


def _unfit(spec: ToolSpec, call: Call) -> str:
    """The end of the sentence. Arguments that are filled in from large values are not looked at."""
    later = {place[0] for place in call.deferred if place}
    given = {name: value for name, value in call.args.items() if name not in later}
    found = [(field, text) for field, text in argument_problems(spec, given) if field.split(".")[1] not in later]
    said = "; ".join(f"{field}: {text}" for field, text in found[:5])
    return f", and does not take its arguments: {said}" if said else "; a person decides whether to make it"

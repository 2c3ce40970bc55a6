"""Starts the program of a tool server in the sandbox that commands run in.

It sees the system's programs, the paths of `read` in mcp.toml, and of the plans' files what `workspace` grants:

- none: a directory of its own in the cache, which is also its home; no plan's files;
- read: the workspace, read-only, as its current directory; a directory of its own for this workspace;
- write: the workspace as commands have it, protected files read-only.

It has no network unless mcp.toml grants it, and of the worker's environment what commands get and `env` names. A server
with access to workspaces has a process for each workspace, which sees no other. On a host without a sandbox
(`PLANS_SANDBOX`) it runs as commands do: with the rights of the worker's user, or not at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.provenance.scan import look
from plansurvive.activities.sandbox.process import Order, Running, begin
from plansurvive.activities.sandbox.sandbox import Network, Sandbox
from plansurvive.activities.workspace.file_names import native
from plansurvive.features.tool_servers.references import secret_of
from plansurvive.features.tool_servers.tool_server import WORKSPACE, ToolServer
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.runtime.home_paths import home_path, program

DOWNLOADERS = frozenset(("npx", "uvx", "uv", "pipx", "bunx", "pnpm", "yarn", "deno"))
"""Programs that fetch the server when they start it."""
HOMES = "mcp"
"""Directory of the servers' own directories, in the cache."""


@dataclass(frozen=True)
class Site:
    """What of this worker programs are started with."""

    sandbox: Sandbox
    names: ProtectedNames
    cache: Path
    directory: Path
    """Where mcp.toml is: references to files are relative to it."""
    environ: Mapping[str, str]
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    """What servers at a URL may be connected to, beside what mcp.toml names."""


async def start(name: str, server: ToolServer, workspace: str, site: Site) -> Running:
    """Start a server's program for a workspace; empty: for none. Raises ToolError MCP_UNAVAILABLE and the sandbox's."""
    order = order_of(name, server, workspace, site)
    try:
        directory = os.open(order.cwd, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise unavailable(name, f"{order.cwd} cannot be opened: {error.strerror}") from None
    try:
        return await begin(order, directory)
    except OSError as error:
        raise unavailable(name, f"its launcher cannot be started: {error.strerror}", retryable=True) from None
    finally:
        os.close(directory)


def order_of(name: str, server: ToolServer, workspace: str, site: Site) -> Order:
    """How the program runs. Raises ToolError."""
    home = site.cache / HOMES / name / hashlib.sha256(workspace.encode()).hexdigest()[:16]
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unavailable(name, f"{home} cannot be created: {error.strerror}") from None
    own = str(home.resolve())
    seen = workspace or own
    command = [_found(name, server.command), *(text.replace(WORKSPACE, seen) for text in server.args)]
    extra = {variable: _value(name, reference, site) for variable, reference in server.env.items()}
    readable = tuple(str(home_path(path)) for path in server.read)
    may_write = server.workspace == "write" and bool(workspace)
    if workspace and not may_write:
        readable = (*readable, workspace)
    sandbox = replace(site.sandbox, readable=(*site.sandbox.readable, *readable), network=_network(name, server, site))
    top, protected = (workspace, _protected(workspace, site)) if may_write else (own, [])
    order = sandbox.confine(command, top, seen, protected, extra, network=server.network)
    if may_write and "HOME" not in extra:  # what it keeps at home is none of the plan's files
        order.env["HOME"] = order.env.get("TMPDIR", own)
    return order


def hint_of(server: ToolServer, workspace: str) -> str:
    """What a server that does not start may lack, as programs rarely say it themselves; empty: nothing that we know."""
    if Path(server.command).name in DOWNLOADERS and not server.network:
        return f"; `{server.command}` downloads programs, for which it needs `network = true`"
    if server.is_local and server.workspace != "none" and not workspace:
        return "; if it needs a workspace to start, set PLANS_WORKSPACE"
    return "" if server.is_local else "; check its `url`, and that it runs"


def unavailable(name: str, problem: str, *, retryable: bool = False) -> ToolError:
    """The error of a server that cannot be used."""
    return ToolError("MCP_UNAVAILABLE", f"the tool server '{name}' of mcp.toml: {problem}", retryable=retryable)


def _network(name: str, server: ToolServer, site: Site) -> Network:
    """A server has the network by mcp.toml alone: neither a step nor `PLANS_SANDBOX_NETWORK=on` gives it more."""
    if server.network and site.sandbox.network == "off" and site.sandbox.level != "none":
        text = "it has `network = true`, but this worker has PLANS_SANDBOX_NETWORK=off; change one of them"
        raise unavailable(name, text)
    return "step"


def _found(name: str, command: str) -> str:
    try:
        return program(command)
    except ValueError as error:
        raise unavailable(name, str(error)) from None


def _value(name: str, reference: str, site: Site) -> str:
    from plansurvive.plans.errors import PlanError

    try:
        return secret_of(reference, site.directory, site.environ)
    except PlanError as error:
        raise unavailable(name, error.message) from None


def _protected(workspace: str, site: Site) -> list[str]:
    """What the program may not change, as for commands; what is created later is reported after the call."""
    try:
        now = look(workspace, str(site.sandbox.state or ""), names=site.names)
    except OSError as error:
        raise ToolError("NOT_FOUND", f"the workspace {workspace} cannot be read: {error.strerror}") from None
    found = [f"{workspace}/{native(path)}" for path in (*now.protected, *now.sockets)]
    return [*found, *site.names.files_below(workspace)]

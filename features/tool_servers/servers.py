"""Reads `mcp.toml`: the servers of tools that a worker offers to plans, by name.

    [servers.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem@2026.8.31", "{workspace}"]
    workspace = "write"
    network = true

    [servers.tracker]
    url = "https://mcp.example.org/mcp"
    token = "env:TRACKER_TOKEN"

There is one file, the operator's: in the state directory, or where PLANS_MCP says. A file of the same name in a
workspace or a repository is never read, as what it names would be started unasked. Nothing of the file gets into a
plan, a history, a log or a prompt; errors name the file and the key, never a value.

One file of the operator and none per project: a file in a cloned repository would start programs and send tokens
unasked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import Field, SecretStr

from plansurvive.features.tool_servers.references import secret_of
from plansurvive.features.tool_servers.settings import ToolServerSettings
from plansurvive.features.tool_servers.tool_server import MAX_SERVERS, Name, ToolServer
from plansurvive.plans.definition.near_names import Foreign
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Value
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.toml_file import read_text
from plansurvive.runtime.toml_shape import checked, shaped

FILE = "mcp.toml"
"""Name of the file in the state directory, unless PLANS_MCP names another."""
SETTING = "PLANS_MCP"

_KIND = "leave it out: `command` or `url` says how the server is reached"
_FOREIGN = Foreign({}, {
    "type": _KIND, "transport": _KIND,
    "headers": 'a bearer token is `token = "env:NAME"`, and no other headers are sent',
    "cwd": "it works in a directory of its own, or with `workspace` in that of the plan",
    "disabled": "take the table out of the file instead", "disabledTools": "`deny` names tools that are left out",
    "autoApprove": 'write `approval = {TOOL = "never"}`', "alwaysAllow": 'write `approval = {TOOL = "never"}`',
})  # fmt: skip
"""Keys in the files of other programs."""


class ToolServerFile(Value):
    """The content of an mcp.toml."""

    servers: dict[Name, ToolServer] = Field(default_factory=dict, max_length=MAX_SERVERS)


def file_of(settings: Settings) -> Path:
    """Where the servers are read from."""
    return settings.of(ToolServerSettings).mcp or settings.state_dir / FILE


def read_servers(settings: Settings) -> Mapping[str, ToolServer]:
    """The servers by name; none if there is no file and none is named. Raises SettingError."""
    path = file_of(settings)
    found = read_text(
        path, SETTING, is_named=settings.of(ToolServerSettings).mcp is not None, may_do="have programs started"
    )
    if found is None:
        return {}
    return checked(
        shaped(ToolServerFile, found, path, SETTING, foreign=_FOREIGN).servers, "servers", found, path, SETTING
    )


def secrets_in(servers: Mapping[str, ToolServer], directory: Path, environ: Mapping[str, str]) -> list[SecretStr]:
    """The secrets that the servers' references lead to now, to be masked wherever a value or a log would show them."""
    found: list[SecretStr] = []
    for reference in (each for server in servers.values() for each in _references(server)):
        with suppress(PlanError):  # whoever uses the server is told
            found.append(SecretStr(secret_of(reference, directory, environ)))
    return found


def _references(server: ToolServer) -> Iterator[str]:
    yield from server.env.values()
    yield from (each for each in (server.token, server.oauth and server.oauth.client_secret) if each)

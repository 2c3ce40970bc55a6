"""Tool servers for tests: real programs in the sandbox of this machine, and what calls them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.sandbox.sandbox import Sandbox, choose
from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.values.redaction import Secrets
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.features.tool_servers.connections import ToolServers
from plansurvive.features.tool_servers.program import Site
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.plans.activity_io import Call
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.name_patterns import DEFAULT
from plansurvive.plans.model import Retry
from tests.kit.waiting import PATIENCE

FOLDER = Path(__file__).parent
PROJECT = FOLDER.parents[2]
SECRET = "a-very-secret-value"
SLOW = {"timeout": PATIENCE, "start_timeout": PATIENCE}
"""Seconds, for a machine that is busy."""


def raw(*options: str, **more: Any) -> ToolServer:
    """The server of raw_server.py."""
    program = FOLDER / "raw_server.py"
    given: dict[str, Any] = {"command": sys.executable, "args": ["-I", "-S", str(program), *options]}
    return ToolServer(**(given | {"read": [str(program)], **SLOW} | more))


def of_sdk(**more: Any) -> ToolServer:
    """The server of sdk_server.py, on standard input and output."""
    program = FOLDER / "sdk_server.py"
    return ToolServer(command=sys.executable, args=[str(program)], read=[str(program), sys.prefix], **{**SLOW, **more})


@dataclass(frozen=True)
class Serving:
    """Where servers run."""

    place: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    addresses: AddressPolicy = field(default_factory=AddressPolicy)

    @property
    def workspace(self) -> Path:
        """The workspace of calls."""
        return self.place / "workspace"

    def servers(self, servers: Mapping[str, ToolServer] | ToolServer, **options: Any) -> ToolServers:
        """These servers; one alone is called `x`."""
        named = {"x": servers} if isinstance(servers, ToolServer) else servers
        secrets = Secrets([SecretStr(SECRET)])
        return ToolServers(named, self.site(), self.place / "state", secrets, **options)

    def site(self) -> Site:
        """What their programs get of this machine."""
        environ = {**os.environ, **self.environ}
        confined = sandbox(self.place / "state")
        return Site(confined, DEFAULT, self.place / "cache", self.place, environ, self.addresses)

    def context(self, workspace: Path | None = None, *, repeatable: bool = True) -> ToolContext:
        """The context of a call."""
        where = str(workspace or self.workspace)
        call = Call(
            args={},
            plan_id="p",
            step_id="s",
            key="k",
            workspace=where,
            timeout=60,
            retry=Retry(),
            repeatable=repeatable,
        )
        return ToolContext(call, Workspace(where), Effects.at(self.place / "effects"))

    async def call(self, servers: ToolServers, tool: str, **args: Any) -> Any:
        """The value of a call of the server `x`."""
        return await servers.call("x", tool, args, context=self.context())

    async def error(self, servers: ToolServers, tool: str, *, repeatable: bool = True, **args: Any) -> ToolError:
        """The error of such a call."""
        try:
            value = await servers.call("x", tool, args, context=self.context(repeatable=repeatable))
        except ToolError as error:
            return error
        raise AssertionError(f"no error but {value!r:.200}")


def sandbox(state: Path) -> Sandbox:
    """The strongest sandbox of this machine."""
    return choose("auto", state=state)

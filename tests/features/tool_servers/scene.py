"""A worker with a tool server whose tools and results a test changes as it goes: a real program in the sandbox."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.features.tool_servers.in_worker import IN_WORKER
from plansurvive.features.tool_servers.server_tools import START_SECONDS, ServerTools
from plansurvive.features.worker_features import features_of_worker
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build

PROGRAM = Path(__file__).parent / "changing_server.py"


def tool(name: str, *args: str, description: str = "Notes it.", **said: Any) -> dict[str, Any]:
    """A tool as `tools/list` gives it, with these arguments, all texts and required."""
    properties = {each: {"type": "string"} for each in args}
    schema = {"type": "object", "properties": properties, "required": list(args), "additionalProperties": False}
    return {"name": name, "description": description, "inputSchema": schema, **said}


def written(state_dir: Path, said: Path, *tools: dict[str, Any], toml: str = "") -> Path:
    """Write an mcp.toml with the server `notes`, which has these tools. Returns its file."""
    say(said, *tools)
    args = ["-I", "-S", str(PROGRAM), str(said)]
    table = f"[servers.notes]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(args)}\n"
    file = state_dir / "mcp.toml"
    file.write_text(f"{table}read = {json.dumps([str(PROGRAM), str(said)])}\n{toml}\n")
    file.chmod(0o600)
    return said


def say(said: Path, *tools: dict[str, Any], **results: str) -> None:
    """From now on the server has these tools, with these texts as results."""
    said.write_text(json.dumps({"tools": tools, "results": results}))


@dataclass(frozen=True)
class Scene:
    """The server `notes`, and where its worker runs."""

    client: Client
    settings: Settings
    said: Path

    @classmethod
    def at(cls, client: Client, settings: Settings, place: Path, *tools: dict[str, Any], toml: str = "") -> Scene:
        """A server with these tools. `toml`: more lines of its table in mcp.toml."""
        return cls(client, settings, written(settings.state_dir, place / "said.json", *tools, toml=toml))

    def says(self, *tools: dict[str, Any], **results: str) -> None:
        """From now on the server has these tools, with these texts as results."""
        say(self.said, *tools, **results)

    def sleeps(self) -> None:
        """The server does not answer until it `says` something."""
        self.said.write_text("")

    @asynccontextmanager
    async def worker(self, patience: float = START_SECONDS, **changed: object) -> AsyncIterator[ServerTools]:
        """A running worker that waits `patience` seconds for the server; other arguments change settings."""
        async with served_worker(self.client, self.settings.with_flags(**changed), patience) as served:
            yield served


@asynccontextmanager
async def served_worker(
    client: Client, settings: Settings, patience: float = START_SECONDS
) -> AsyncIterator[ServerTools]:
    """A running worker with the tools of the servers of its mcp.toml, for which it waits `patience` seconds."""
    tools, features = load_tools(()), features_of_worker(client, settings)
    (own,) = [each for each in features.in_worker if isinstance(each, IN_WORKER)]
    own.patience = patience
    async with features.running(tools, print), build(client, settings, tools, indexed=True, features=features):
        assert own.served is not None
        yield own.served

"""A worker with a scripted coding agent: a real program in the sandbox that speaks the protocol."""

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
from plansurvive.features.coding_agents.turn import CONTINUE, IF_LOST
from plansurvive.features.worker_features import features_of_worker
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit.driving import Started, View

AGAIN = f"{CONTINUE} {IF_LOST}\n\nFix the test."
"""What an agent is sent that was sent the request, and has done nothing since that its workflow knows."""
PROGRAM = Path(__file__).parents[2] / "kit" / "coding_agent.py"


@dataclass(frozen=True)
class Scene:
    """The agent `scripted`, and where its worker runs."""

    client: Client
    settings: Settings
    place: Path

    def script(self, *prompts: list[dict[str, Any]], toml: str = "", **more: Any) -> None:
        """The agent does this, request by request. `toml`: more lines of its table in agents.toml."""
        (self.place / "script.json").write_text(json.dumps({"prompts": prompts, **more}))
        self.home.mkdir(exist_ok=True)
        command = [sys.executable, "-I", "-S", str(PROGRAM), str(self.place / "script.json")]
        lines = [
            "[agents.scripted]",
            f"command = {json.dumps(command)}",
            f"home = {json.dumps(str(self.home))}",
            f"read = {json.dumps([str(PROGRAM), str(self.place / 'script.json')])}",
            toml or 'approve = "never"',
        ]
        file = self.settings.state_dir / "agents.toml"
        file.write_text("\n".join(lines) + "\n")
        file.chmod(0o600)

    @property
    def home(self) -> Path:
        """The agent's home directory."""
        return self.place / "home"

    def log(self, method: str = "") -> list[dict[str, Any]]:
        """What the agent has received; of one method, its parameters."""
        entries = whole_lines(self.home / "log.jsonl")
        return [each["params"] for each in entries if each.get("method") == method] if method else entries

    @property
    def prompts(self) -> list[str]:
        """The requests that the agent was sent, in all its sessions."""
        return [each["prompt"][0]["text"] for each in self.log("session/prompt")]

    def chosen(self) -> list[str | None]:
        """The options that were selected for its permission requests; None: cancelled."""
        answers = [each["answer"] for each in self.log() if each.get("to") == "session/request_permission"]
        return [each["outcome"].get("optionId") for each in answers]

    @asynccontextmanager
    async def worker(self, **changed: object) -> AsyncIterator[None]:
        """A running worker; arguments change settings."""
        settings = self.settings.with_flags(**changed)
        tools, features = load_tools(()), features_of_worker(self.client, settings)
        async with features.running(tools, print), build(self.client, settings, tools, indexed=True, features=features):
            yield


def whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines of JSON in a file that an agent is adding to, without one that is not whole yet."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def code(prompt: str = "Fix the test.", **more: Any) -> dict[str, Any]:
    """A step that has the agent work."""
    return {"id": "code", "tool": "coding_agent", "args": {"agent": "scripted", "prompt": prompt, **more}}


def agent_of(plan: Started) -> Started:
    """The workflow of the agent of the step `code`."""
    return Started(plan.client, f"agent-{plan.id.removeprefix('plan-')}-code")


async def asked(plan: Started) -> tuple[Started, dict[str, Any]]:
    """The agent of the plan, and what it asks a person, once it does."""
    await plan.until(lambda view: bool(_asks(view)), "its agent asks")
    agent = agent_of(plan)
    view = await agent.until(lambda view: bool(view["pending"]), "a permission is asked for")
    return agent, view["pending"][0]


def _asks(view: View) -> list[str]:
    return [name for step in view["steps"] for name in step.get("agentAsks", {}).get("stepIds", [])]

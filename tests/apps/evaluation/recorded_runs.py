"""Runs recorded by a real server and worker, whose model is a scripted one: stateless, so that it can be asked again.

What the model `demo` says is what is recorded; `other` says something else to the same prompts.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.activities.tools.registry import load_tools
from plansurvive.apps.evaluation.playing import Asking
from plansurvive.plans.llm.prompt_set import PromptSet
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.kit import LEDGER_TOOLS
from tests.kit.driving import CEILING, LEDGER, Plans, Started, View

Exchange = dict[str, Any]


@dataclass(frozen=True)
class Lab:
    """A worker that records runs."""

    client: Client
    llm: ScriptedLlm
    settings: Settings

    @property
    def workspace(self) -> Path:
        """Where tools work."""
        assert self.settings.workspace is not None
        return self.settings.workspace

    @property
    def plans(self) -> Plans:
        """Plans of this worker."""
        return Plans(self.client, self.settings.task_queue, self.workspace)

    async def start(self, request: str, **order: Any) -> Started:
        """Start an agent."""
        name = f"agent-{uuid.uuid4().hex[:12]}"
        argument = {"order": {"request": request, **order}, "options": {"workspace": str(self.workspace)}}
        await self.client.start_workflow(
            "AgentWorkflow", argument, id=name, task_queue=self.settings.task_queue, execution_timeout=CEILING
        )
        return Started(self.client, name)

    async def recorded(self, request: str, **order: Any) -> str:
        """Record an agent's run; returns its id."""
        started = await self.start(request, **order)
        await started.ended()
        return started.id

    async def drafted(self, request: str, **options: Any) -> Started:
        """Have the model write a plan, which stays in review."""
        sent = {"request": request, "options": {"workspace": str(self.workspace), "review": True, **options}}
        started = await self.plans.start_with(sent)
        await started.until(lambda view: view["status"] == "review", "the plan is in review")
        return started

    def forget(self) -> None:
        """Remove what tools have written, so that whatever is written later shows."""
        for path in self.workspace.iterdir():
            path.unlink()

    @property
    def written(self) -> list[str]:
        """What is in the workspace."""
        return sorted(path.name for path in self.workspace.iterdir())

    @property
    def ledger(self) -> str:
        """What the ledger tools have written down."""
        path = self.workspace / LEDGER
        return path.read_text() if path.exists() else ""

    def asking(self, model: str = "demo", prompts: PromptSet | None = None) -> Asking:
        """Ask a model of the scripted server."""
        return Asking(LanguageModel(self.llm.url, None, model), prompts or PromptSet())


@asynccontextmanager
async def lab(client: Client, settings: Settings, exchanges: Sequence[Exchange], **changed: Any) -> AsyncIterator[Lab]:
    """A scripted model, and a worker that asks it; the worker ends with the block."""
    with ScriptedLlm(Script.of(list(exchanges))) as llm:
        own = settings.with_flags(openai_base_url=llm.url, model="demo", **changed)
        async with build(client, own, load_tools([LEDGER_TOOLS]), indexed=True):
            yield Lab(client, llm, own)


def says(value: Any, last: str = "", model: str = "demo", request: str = "", **usage: int) -> Exchange:
    """What a model says whenever the last message has a text, and any message the `request`."""
    when = {name: text for name, text in {"last": last, "model": model, "any": request}.items() if text}
    reply: dict[str, Any] = {"json": value}
    return {"when": when, "reply": reply | ({"usage": usage} if usage else {}), "times": 0}


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A tool call in an answer."""
    return {"tool": tool, "args": args}


def asked_for(view: View) -> list[str]:
    """The calls that await approval."""
    return [each["id"] for each in view["steps"] if "awaiting" in each]


FIRST, LATER = "Call the tools you need, or answer.", "Continue with tool_calls, or provide your answer."
WORKS: Mapping[str, Any] = {"tool_calls": [call("work", name="one"), call("work", name="two")]}
"""The model's first answer in most runs."""

"""Agents driven from tests: a scripted LLM over HTTP, a worker that asks it, and runs started on the real server."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from tests.driving import CEILING, Plans, Started


@dataclass(frozen=True)
class Agents:
    """Starts agents on one queue, in one workspace."""

    plans: Plans
    llm: ScriptedLlm

    async def start(self, request: str, options: Mapping[str, Any] | None = None, **order: Any) -> Started:
        """Start an agent."""
        name = f"agent-{uuid.uuid4().hex[:12]}"
        given = {"workspace": str(self.plans.workspace), **self.plans.options, **(options or {})}
        await self.plans.client.start_workflow(
            "AgentWorkflow",
            {"order": {"request": request, **order}, "options": given},
            id=name,
            task_queue=self.plans.queue,
            execution_timeout=CEILING,
        )
        return Started(self.plans.client, name)

    async def run(self, request: str, options: Mapping[str, Any] | None = None, **order: Any) -> dict[str, Any]:
        """Start an agent and wait for its end."""
        return await (await self.start(request, options, **order)).ended()

    @property
    def prompts(self) -> list[str]:
        """What the model was told, call by call."""
        return [str(seen.body["messages"][-1]["content"]) for seen in self.llm.play.seen]


Serving = Callable[[list[dict[str, Any]]], AbstractAsyncContextManager[Agents]]


def serving(plans: Plans, make_worker: Callable[..., Any]) -> Serving:
    """Opens a scripted LLM and a worker that asks it."""

    @asynccontextmanager
    async def serve(exchanges: list[dict[str, Any]]) -> AsyncIterator[Agents]:
        with ScriptedLlm(Script.of(exchanges)) as llm:
            async with make_worker(openai_base_url=llm.url, model="demo"):
                yield Agents(plans, llm)

    return serve


def says(value: Any, **more: Any) -> dict[str, Any]:
    """The model's next answer."""
    return {"reply": {"json": value}, **more}


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A tool call in an answer."""
    return {"tool": tool, "args": args}


def three_tasks(**waiting: Any) -> list[dict[str, Any]]:
    """A model that looks at the prompt only: it works on the task that is marked as current.

    Each task is a call of `work`; `waiting` says how long.
    """
    choose = {"tool_calls": [call("plan_actions", reason="three")]}
    story = [
        (choose, "Call the tools you need, or answer."),
        ({"tasks": ["Write one", "Write two", "Write three"]}, "Split the request into tasks"),
    ]
    for number, name in enumerate(("one", "two", "three"), 1):
        done = {"tool_calls": [call("work", name=name, **waiting)], "task_completed": f"{name} is written"}
        story.append((done, f"=== CURRENT TASK ===\nTask {number}:"))
    story.append(({"final_answer": "All written."}, "ALL 3 tasks are complete"))
    return [says(value, when={"last": when}, times=0) for value, when in story]

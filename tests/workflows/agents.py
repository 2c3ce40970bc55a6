"""Agent fixtures: a scripted LLM over HTTP, a worker configured to use it, and agents started on a real server."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from tests.kit.driving import Plans, Started


@dataclass(frozen=True)
class Agents:
    """Starts agents on one task queue, in one workspace."""

    plans: Plans
    llm: ScriptedLlm

    async def start(self, request: str, options: Mapping[str, Any] | None = None, **order: Any) -> Started:
        """Start an agent."""
        name = f"agent-{uuid.uuid4().hex[:12]}"
        merged = {"workspace": str(self.plans.workspace), **self.plans.options, **(options or {})}
        await self.plans.client.start_workflow(
            "AgentWorkflow",
            {"order": {"request": request, **order}, "options": merged},
            id=name,
            task_queue=self.plans.queue,
            execution_timeout=self.plans.ceiling,
        )
        return Started(self.plans.client, name)

    async def run(self, request: str, options: Mapping[str, Any] | None = None, **order: Any) -> dict[str, Any]:
        """Start an agent and wait until it has ended; returns its result."""
        return await (await self.start(request, options, **order)).ended()

    @property
    def prompts(self) -> list[str]:
        """The last message of each LLM request."""
        return [str(seen.body["messages"][-1]["content"]) for seen in self.llm.play.seen]

    @property
    def wholes(self) -> list[str]:
        """What the model was told by each LLM request: its user messages, joined."""
        return [
            "\n".join(str(each["content"]) for each in seen.body["messages"] if each["role"] == "user")
            for seen in self.llm.play.seen
        ]


Serving = Callable[[list[dict[str, Any]]], AbstractAsyncContextManager[Agents]]


def serving(plans: Plans, make_worker: Callable[..., Any]) -> Serving:
    """A context manager that runs a scripted LLM and a worker that uses it."""

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
    """A stateless LLM script: splits the request into three tasks and works on the one the prompt marks as current.

    Each task is one call of the tool `work`, with `waiting` as arguments (such as its duration).
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

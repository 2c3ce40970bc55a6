"""Plans drafted by a scripted LLM over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from tests.kit.driving import Plans, Started
from tests.workflows.conftest import MakeWorker


@asynccontextmanager
async def talking(make_worker: MakeWorker, *exchanges: Any) -> AsyncIterator[ScriptedLlm]:
    """A running worker whose LLM gives these answers in order."""
    script = Script.of([each if "reply" in each else {"reply": each} for each in exchanges])
    with ScriptedLlm(script) as llm:
        async with make_worker(openai_base_url=llm.url, model="demo"):
            yield llm


async def make(plans: Plans, request: str, *, review: bool = True, **fields: Any) -> Started:
    """Start a plan that the LLM drafts from a request."""
    options = {"workspace": str(plans.workspace), "review": review, **plans.options}
    return await plans.start_with({"request": request, "plan": fields, "options": options})


async def reviewed(plans: Plans, request: str, **fields: Any) -> Started:
    """A drafted plan in review."""
    started = await make(plans, request, **fields)
    await started.until(lambda view: view["status"] == "review", "review")
    return started


def answer(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An LLM answer with a plan."""
    return {"json": {"title": "Notes", "steps": list(steps), **more}}


def write(name: str, *needs: str, content: str = "text", **more: Any) -> dict[str, Any]:
    """A step that writes `<name>.txt`."""
    return {
        "id": name,
        "description": f"Write {name}",
        "tool": "write_file",
        "args": {"path": f"{name}.txt", "content": content},
        "dependsOn": list(needs),
        **more,
    }

"""A coding agent whose history is kept, and that of its plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from plansurvive.client import runs
from plansurvive.runtime.settings import Settings
from tests.features.coding_agents.scene import Scene, asked, code
from tests.kit.driving import Plans, Started

Scenario = Callable[[Plans], Awaitable[Started]]
FIRST = [
    {"plan": [["Test it", "in_progress"]]}, {"tokens": 10}, {"call": "rg cart", "kind": "search"},
    {"ask": "make test", "yes": [{"say": "ran"}]}, {"ask": "git push"},
]  # fmt: skip
AFTER = [{"run": "echo done"}, {"say": "done"}]


def serve(settings: Settings, folder: Path) -> None:
    """Name the agent in the agents.toml of a worker."""
    settings.make_state_dir()
    place = folder / "agent"
    place.mkdir(exist_ok=True)
    Scene(None, settings, place).script(FIRST, AFTER)  # type: ignore[arg-type]


async def _worked(plans: Plans) -> tuple[Started, Started]:
    """It asks for permissions, is interrupted by a message, continues its session, and runs a command."""
    plan = await plans.start([code()], budget={"tokens": 1_000})
    agent, item = await asked(plan)
    await agent.approve(item["stepId"], digest=item["digest"])

    async def asks_for(title: str) -> dict[str, Any]:
        view = await agent.until(lambda view: title in str(view["pending"]), f"it asks for {title}")
        found: dict[str, Any] = view["pending"][0]
        return found

    await asks_for("git push")
    await runs.event(plans.client, agent.id, "message", "Do not push.", by="ann")
    item = await asks_for("echo done")
    await agent.approve(item["stepId"], digest=item["digest"])
    await plan.ended()
    return plan, agent


async def _agent(plans: Plans) -> Started:
    return (await _worked(plans))[1]


async def _plan(plans: Plans) -> Started:
    return (await _worked(plans))[0]


CODING_AGENTS: Mapping[str, Scenario] = {
    "coding-agent": _agent, "coding-agent-step": _plan, "coding-agent-waits": _agent,
}  # fmt: skip

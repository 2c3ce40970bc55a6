"""The tools a form can be made for: those of this machine, and those the plan's own workers told it about."""

from __future__ import annotations

from temporalio.client import Client

from client.local_tools import known_tools
from client.rpc import ask
from plans.errors import PlanError
from plans.model import ToolSpec
from runtime.settings import Settings


async def tools_of(client: Client, plan: str, settings: Settings) -> dict[str, ToolSpec]:
    """Descriptions by name; what the plan says of a tool counts for it."""
    try:
        told = {name: ToolSpec.model_validate(spec) for name, spec in (await ask(client, plan, "tools")).items()}
    except PlanError as error:
        if error.code != "QUERY_FAILED":
            raise
        told = {}  # a worker of an older version does not tell
    return known_tools(settings) | told

"""The tools this machine knows (built in, or of PLANS_TOOLS), and those that the workers of a plan described."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plans.errors import PlanError
from plans.model import ToolSpec
from runtime.settings import Settings

if TYPE_CHECKING:
    from temporalio.client import Client


def known_tools(settings: Settings) -> dict[str, ToolSpec]:
    """Their descriptions by name. Raises PlanError when a module of the user's own cannot be used."""
    from activities.tools.registry import load_tools  # every tool with what it needs; most commands need none

    return {name: tool.spec for name, tool in sorted(load_tools(settings.tools).items())}


async def tools_of(client: Client, plan: str, settings: Settings) -> dict[str, ToolSpec]:
    """Descriptions by name; what the plan says of a tool counts for it."""
    from client.rpc import ask  # `plan check` needs the tools of this machine, and no Temporal client

    try:
        told = {name: ToolSpec.model_validate(spec) for name, spec in (await ask(client, plan, "tools")).items()}
    except PlanError as error:
        if error.code != "QUERY_FAILED":
            raise
        told = {}  # a worker of an older version does not tell
    return known_tools(settings) | told

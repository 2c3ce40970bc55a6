"""Tool specifications: the tools of this machine (built in or from PLANS_TOOLS) and those of a plan's workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plans.errors import PlanError
from plans.model import ToolSpec
from runtime.settings import Settings

if TYPE_CHECKING:
    from temporalio.client import Client


def known_tools(settings: Settings) -> dict[str, ToolSpec]:
    """Specifications of this machine's tools by name. Raises PlanError if a module in PLANS_TOOLS cannot be loaded."""
    from activities.tools.registry import load_tools  # lazily: imports all tools, which most commands do not need

    return {name: tool.spec for name, tool in sorted(load_tools(settings.tools).items())}


async def tools_of(client: Client, plan: str, settings: Settings) -> dict[str, ToolSpec]:
    """Specifications by name. Those that the plan's workers reported override this machine's. Raises as `ask`."""
    from client.rpc import ask  # lazily: `plan check` needs local tools but no Temporal client

    try:
        reported = {name: ToolSpec.model_validate(spec) for name, spec in (await ask(client, plan, "tools")).items()}
    except PlanError as error:
        if error.code != "QUERY_FAILED":
            raise
        reported = {}  # an older worker does not have this query
    return known_tools(settings) | reported

"""Tool specifications: the tools of this machine and those of a plan's workers.

Those of this machine are built in, from PLANS_TOOLS, or of features: `tool_servers` has those that the servers in
mcp.toml were last heard to offer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plansurvive.client.feature import specs_of
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import ToolSpec
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.sides import sides

if TYPE_CHECKING:
    from temporalio.client import Client


def known_tools(settings: Settings) -> dict[str, ToolSpec]:
    """Specifications of this machine's tools by name; starts no server.

    Raises PlanError if a module in PLANS_TOOLS cannot be loaded, or for a bad file of the operator.
    """
    from plansurvive.activities.tools.registry import (
        load_tools,  # lazily: imports all tools, which most commands do not need
        with_receivers,
    )

    # A worker of this machine has these settings, and asks, and refuses, by them.
    loaded = with_receivers(load_tools(settings.tools), settings.http_allow)
    own = {name: tool.spec for name, tool in sorted(loaded.items())}
    found = own | {name: spec for name, spec in sorted(specs_of(settings).items()) if name not in own}
    for described in (side.described(settings) for side in sides("tool_specs")):
        found = {name: described(spec) for name, spec in found.items()}
    return found


async def tools_of(client: Client, plan: str, settings: Settings) -> dict[str, ToolSpec]:
    """Specifications by name. Those that the plan's workers reported override this machine's. Raises as `ask`."""
    from plansurvive.client.rpc import ask  # lazily: `plan check` needs local tools but no Temporal client

    try:
        reported = {name: ToolSpec.model_validate(spec) for name, spec in (await ask(client, plan, "tools")).items()}
    except PlanError as error:
        if error.code != "QUERY_FAILED":
            raise
        reported = {}  # an agent does not have this query
    return known_tools(settings) | reported

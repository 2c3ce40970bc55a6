"""The tool sleep: described here, done by the workflow itself as a durable timer that needs no worker alive."""

from __future__ import annotations

from typing import Annotated, NoReturn

from pydantic import Field

from activities.tools.tool import tool
from plans.errors import ToolError


@tool(effect="pure", durable=True, timeout=31_536_000.0)
def sleep(seconds: Annotated[float, Field(ge=0, le=31_536_000)]) -> NoReturn:  # noqa: ARG001
    """Wait. The time runs on while workers and servers are down.

    Args:
        seconds: How long, up to a year.

    Returns:
        {until}, the moment the time was over.
    """
    raise ToolError("BAD_TOOL", "sleep is a timer of the workflow; a worker must not register it as an activity")

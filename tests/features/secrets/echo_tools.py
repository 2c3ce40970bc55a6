"""A tool that gives away what it is given, in every way that a tool can: loaded as a user's own (PLANS_TOOLS)."""

from __future__ import annotations

import base64
import logging
from typing import Any
from urllib.parse import quote

from plansurvive.activities.tools.tool import ToolContext, tool
from plansurvive.plans.errors import ToolError


@tool(effect="opaque")
async def echo(token: str, context: ToolContext, how: str = "") -> Any:
    """Say the token.

    Args:
        token: What to say.
        how: fails, breaks, or large.

    Returns:
        The token, in several spellings.
    """
    context.progress(f"progress of {token}")
    context.warn(f"a warning about {token}")
    logging.getLogger("tests.echo").warning("a log line about %s", token)
    if how == "fails":
        raise ToolError("NOT_GOOD", f"an error about {token}")
    if how == "breaks":
        raise ValueError(token)
    if how == "large":
        return [token] * 400
    encoded = base64.b64encode(f"user:{token}".encode()).decode()
    return {"token": token, "basic": encoded, "url": quote(token, safe=""), token: "as a name"}

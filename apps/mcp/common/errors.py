"""Errors of tools as an agent reads them: the codes and sentences of the command line, as a tool's result.

A result with `isError` has `structuredContent` {code, message, problems}: an agent can correct its call by it. What
no one foresaw is logged, and the agent learns no more than that.
"""

from __future__ import annotations

import logging
from typing import Any

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from plansurvive.client.errors import BadPlanId, PlanNotFound
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.text.safe_text import safe

LOG = logging.getLogger(__name__)
MAX_PROBLEMS = 100
"""Problems of a plan that are reported at once."""
MAX_TEXT = 24_000
"""Characters of an error's text."""


def error_of(error: ToolError) -> PlanError:
    """The error that the library wrapped, as one of ours."""
    cause = error.__cause__
    if isinstance(cause, PlanError):
        return cause
    if isinstance(cause, ValidationError):
        rows = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in cause.errors()[:MAX_PROBLEMS]]
        return PlanError("; ".join(rows), "BAD_ARGUMENTS")
    if cause is None:
        return PlanError(str(error), "UNKNOWN_TOOL")
    LOG.error("a tool failed unexpectedly", exc_info=cause)
    return PlanError(f"{type(cause).__name__}; this is a bug, the log of the server has more", "UNEXPECTED")


def resource_error(error: ResourceError) -> ResourceError:
    """The error of reading a resource, with the code and sentence of ours that the library wrapped."""
    cause = error.__cause__
    while cause is not None and not isinstance(cause, PlanError):
        cause = cause.__cause__
    if cause is None:
        return error
    text = f"{cause.code}: {safe(cause.message)[:MAX_TEXT]}"
    return ResourceNotFoundError(text) if isinstance(cause, (PlanNotFound, BadPlanId)) else ResourceError(text)


def told(error: PlanError) -> CallToolResult:
    """An error as the result of a call."""
    data: dict[str, Any] = {"code": error.code, "message": safe(error.message)[:MAX_TEXT]}
    text = f"{error.code}: {data['message']}"
    if isinstance(error, InvalidPlan):
        data["problems"] = [each.model_dump(mode="json") for each in error.problems[:MAX_PROBLEMS]]
    return CallToolResult(content=[TextContent(text=text)], structured_content=data, is_error=True)

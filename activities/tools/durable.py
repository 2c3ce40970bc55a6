"""Descriptions of the tools that the workflow runs itself, without an activity: sleep and agent.

sleep is a durable timer, which needs no running worker. agent is a child workflow; its tool calls and files are
attributed to the step.
"""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

from pydantic import Field

from activities.tools.tool import tool
from plans.errors import ToolError

_SLEPT = {"type": "object", "properties": {"until": {"type": "string"}}, "additionalProperties": False}


@tool(effect="pure", durable=True, timeout=31_536_000.0, value_schema=_SLEPT)
def sleep(seconds: Annotated[float, Field(ge=0, le=31_536_000)]) -> NoReturn:  # noqa: ARG001
    """Wait for a number of seconds. The time also passes while workers and servers are down.

    Args:
        seconds: Seconds to wait; at most 31,536,000 (one year).

    Returns:
        {until}: the time at which the wait ended.
    """
    raise ToolError("BAD_TOOL", "sleep is a timer of the workflow; a worker must not register it as an activity")


@tool(effect="opaque", durable=True, timeout=86_400.0, value_schema={"type": "string"})
def agent(
    objective: Annotated[str, Field(min_length=1, max_length=15_000)],  # noqa: ARG001
    tools: list[str] | None = None,  # noqa: ARG001
    max_calls: Annotated[int, Field(ge=1, le=10_000)] | None = None,  # noqa: ARG001
    max_tokens: Annotated[int, Field(ge=1)] | None = None,  # noqa: ARG001
    max_seconds: Annotated[float, Field(gt=0)] | None = None,  # noqa: ARG001
    output_schema: dict[str, Any] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Run an LLM agent that works towards an objective, task by task, by calling tools.

    Args:
        objective: What the agent must achieve, with all the information it needs.
        tools: Names of the tools it may call; default: all tools.
        max_calls: Maximum number of LLM requests; default: 50.
        max_tokens: Maximum number of tokens; default: 1,000,000.
        max_seconds: Maximum time in seconds; default: 3,600 (one hour).
        output_schema: JSON Schema that the answer must match; default: the answer is text.

    Returns:
        The agent's answer: text, or a JSON value that matches outputSchema.
    """
    raise ToolError("BAD_TOOL", "agent is a child workflow; a worker must not register it as an activity")

"""The tool agent: described here, done by a workflow of its own, whose tool calls and files count to the step."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

from pydantic import Field

from activities.tools.tool import tool
from plans.errors import ToolError


@tool(effect="opaque", durable=True, timeout=86_400.0)
def agent(
    objective: Annotated[str, Field(min_length=1, max_length=15_000)],  # noqa: ARG001
    tools: list[str] | None = None,  # noqa: ARG001
    max_calls: Annotated[int, Field(ge=1, le=10_000)] | None = None,  # noqa: ARG001
    max_tokens: Annotated[int, Field(ge=1)] | None = None,  # noqa: ARG001
    max_seconds: Annotated[float, Field(gt=0)] | None = None,  # noqa: ARG001
    output_schema: dict[str, Any] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Have an LLM work through an objective with tools, task by task, until it is reached.

    Args:
        objective: What is to be reached, with all it must know.
        tools: The only tools it may call; all of them, if not given.
        max_calls: Model calls at most; 50, if not given.
        max_tokens: Tokens at most; 1,000,000, if not given.
        max_seconds: Time at most; an hour, if not given.
        output_schema: JSON Schema of its answer.

    Returns:
        The agent's answer: a text, or JSON of the schema.
    """
    raise ToolError("BAD_TOOL", "agent is a workflow of its own; a worker must not register it as an activity")

"""The tools that no activity runs, described here: sleep and agent.

The workflow sleeps itself, by a durable timer that needs no worker alive. An agent is a workflow of its own, whose tool
calls and files count to the step.
"""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

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

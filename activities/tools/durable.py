"""Descriptions of the tools that the workflow runs itself, without an activity: sleep, agent and plan.

sleep is a durable timer, which needs no running worker. agent and plan are child workflows; their tool calls and files
are attributed to the step.
"""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

from pydantic import Field

from activities.tools.tool import tool
from plans.errors import ToolError


@tool(effect="pure", durable=True, timeout=31_536_000.0)
def sleep(seconds: Annotated[float, Field(ge=0, le=31_536_000)]) -> NoReturn:  # noqa: ARG001
    """Wait for a number of seconds. The time also passes while workers and servers are down.

    Args:
        seconds: Seconds to wait; at most 31,536,000 (one year).

    Returns:
        {until}: the time at which the wait ended.
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


@tool(effect="opaque", durable=True, timeout=31_536_000.0)
def plan(
    file: Annotated[str, Field(min_length=1, max_length=4_096)] | None = None,  # noqa: ARG001
    template: Annotated[str, Field(min_length=1, max_length=200)] | None = None,  # noqa: ARG001
    steps: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None,  # noqa: ARG001
    inputs: dict[str, Any] | None = None,  # noqa: ARG001
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,179}$")] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Run another plan as a step: a plan file, a template, or steps. Give exactly one of the three.

    Args:
        file: Path of a plan file (JSON or YAML) in the workspace.
        template: NAME or NAME@HASH of a saved template.
        steps: The steps themselves, as in a plan file; their references mean each other and `inputs`.
        inputs: Values of the other plan's inputs, by name.
        id: Id of the other plan; default: made from the ids of this plan and the step.

    Returns:
        The other plan's `outputs`; if it has none, the values of its completed steps by id.
    """
    raise ToolError("BAD_TOOL", "plan is a child workflow; a worker must not register it as an activity")

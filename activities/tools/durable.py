"""Descriptions of the tools that the workflow runs itself, without an activity: sleep, ask, wait_for, agent, plan
and coding_agent.

sleep is a durable timer, which needs no running worker. ask and wait_for wait for a message, for years if need be.
agent, plan and coding_agent are child workflows; their tool calls and files are attributed to the step.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NoReturn

from pydantic import Field

from plansurvive.activities.tools.tool import tool
from plansurvive.plans.errors import ToolError

_SLEPT = {"type": "object", "properties": {"until": {"type": "string"}}, "additionalProperties": False}

_CODED = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "sessionId": {"type": "string"},
        "stopReason": {"type": "string"},
        "usage": {"type": "object"},
        "files": {"type": "array", "items": {"type": "string"}},
    },
    "additionalProperties": False,
}


@tool(effect="pure", durable=True, timeout=31_536_000.0, value_schema=_SLEPT)
def sleep(seconds: Annotated[float, Field(ge=0, le=31_536_000)]) -> NoReturn:  # noqa: ARG001
    """Wait for a number of seconds. The time also passes while workers and servers are down.

    Args:
        seconds: Seconds to wait; at most 31,536,000 (one year).

    Returns:
        {until}: the time at which the wait ended.
    """
    raise ToolError("BAD_TOOL", "sleep is a timer of the workflow; a worker must not register it as an activity")


@tool(effect="pure", durable=True, timeout=31_536_000.0, value_schema={"type": "string"})
def ask(
    question: Annotated[str, Field(min_length=1, max_length=20_000)],  # noqa: ARG001
    choices: Annotated[list[str | int | float | bool], Field(min_length=1, max_length=200)] | None = None,  # noqa: ARG001
    schema: dict[str, Any] | None = None,  # noqa: ARG001
    default: Any = None,  # noqa: ARG001
    timeout: Annotated[float, Field(gt=0, le=31_536_000)] | None = None,  # noqa: ARG001
    on_timeout: Literal["default", "fail", "skip"] | None = None,  # noqa: ARG001
    to: Annotated[str, Field(max_length=200)] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Ask a person a question and wait for the answer, however long that takes; other steps continue meanwhile.

    Use it for what only a person knows or may choose, not for permission: that is requiresApproval.

    Args:
        question: What to ask, with everything a person needs to answer it.
        choices: The possible answers, texts or numbers; instead of a schema.
        schema: JSON Schema of the answer; without schema and choices the answer is a text.
        default: What an empty answer means, and the answer if none comes in time. Must fit choices or schema.
        timeout: Seconds to wait for an answer; default: without limit.
        on_timeout: If no answer comes in time: take the default, fail or skip. Default: default if given, else fail.
        to: Who should answer, for people to read; anybody may.

    Returns:
        The answer: a text, one of the choices, or a value that matches the schema.
    """
    raise ToolError("BAD_TOOL", "ask waits in the workflow; a worker must not register it as an activity")


@tool(effect="pure", durable=True, timeout=31_536_000.0, quoting={"match": "jmespath"})
def wait_for(
    event: Annotated[str, Field(min_length=1, max_length=200)],  # noqa: ARG001
    match: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None,  # noqa: ARG001
    timeout: Annotated[float, Field(gt=0, le=31_536_000)] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Wait until another program or a person sends the plan an event; one that came before counts as well.

    Args:
        event: Name of the event, such as order.paid: letters, digits and _ . : / -
        match: JMESPath over the event's data that must hold, such as: id == {{order.id}} && total > `10`
        timeout: Seconds to wait; then the step fails with EVENT_TIMEOUT. Default: without limit.

    Returns:
        The data of the event; null if it has none.
    """
    raise ToolError("BAD_TOOL", "wait_for waits in the workflow; a worker must not register it as an activity")


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


@tool(effect="opaque", durable=True, timeout=31_536_000.0, value_schema={"type": "object"})
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


@tool(approval="always", effect="opaque", durable=True, timeout=86_400.0, value_schema=_CODED)
def coding_agent(
    agent: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")],  # noqa: ARG001
    prompt: Annotated[str, Field(min_length=1, max_length=15_000)],  # noqa: ARG001
    session: Annotated[str, Field(min_length=1, max_length=2_000)] | None = None,  # noqa: ARG001
    schema: dict[str, Any] | None = None,  # noqa: ARG001
) -> NoReturn:
    """Have a coding agent of agents.toml work in the workspace. What it asks permission for, a person decides.

    Args:
        agent: Its name in agents.toml.
        prompt: What it is to do, with all the information it needs.
        session: Id of an earlier session of it to continue; default: a new one.
        schema: JSON Schema that the answer must match; default: the answer is text.

    Returns:
        {text, sessionId, stopReason, usage, files}, or a JSON value that matches the schema.
    """
    raise ToolError("BAD_TOOL", "coding_agent is a child workflow; a worker must not register it as an activity")

"""What an agent is ordered to do, as a value; and the same as arguments of the tool `agent`, for steps of plans.

The agent of a step has a name that follows from the step's, so that it is found when the plan is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator

from plans.agents.limits import AgentLimits
from plans.definition.output_schema import schema_problem
from plans.model import Value

MAX_REQUEST = 20_000


class AgentOrder(Value):
    """What an agent is to do, and what it may use."""

    request: str = Field(min_length=1, max_length=MAX_REQUEST, description="What is to be reached.")
    tools: list[str] | None = Field(default=None, description="Names of the tools it may call; none: all.")
    limits: AgentLimits = Field(default_factory=AgentLimits)
    output_schema: dict[str, Any] | None = Field(default=None, description="JSON Schema of the final answer.")
    plan_id: str = Field(default="", max_length=200, description="The plan it works for.")
    step_id: str = Field(default="", max_length=200, description="The step of that plan.")

    @field_validator("output_schema")
    @classmethod
    def _is_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        problem = schema_problem(schema or {})
        if problem:
            raise ValueError(problem)
        return schema


STEP_LIMITS = {"maxCalls": "iterations", "maxTokens": "tokens", "maxSeconds": "seconds"}
"""The limits of an agent, as the arguments of the tool `agent` name them."""


def step_args(order: AgentOrder) -> dict[str, Any]:
    """The arguments of the tool `agent` that an order stands for, the objective left out; defaults are not named."""
    limits = {name: getattr(order.limits, field) for name, field in STEP_LIMITS.items()}
    usual = AgentLimits()
    given = {name: value for name, value in limits.items() if value != getattr(usual, STEP_LIMITS[name])}
    rest = {"tools": order.tools, "outputSchema": order.output_schema}
    return {name: value for name, value in rest.items() if value is not None} | given


def request_text(order: AgentOrder) -> str:
    """The request as the model is told it."""
    if order.output_schema is None:
        return order.request
    return f"{order.request}\n\nThe final answer must be a JSON text of this schema:\n{json.dumps(order.output_schema)}"


def order_of_step(args: Mapping[str, Any], plan_id: str, step_id: str) -> AgentOrder:
    """The order that a step of a plan gives."""
    given = {field: args[name] for name, field in STEP_LIMITS.items() if args.get(name) is not None}
    return AgentOrder(
        request=args["objective"],
        tools=args.get("tools"),
        limits=AgentLimits.model_validate(given),
        output_schema=args.get("outputSchema"),
        plan_id=plan_id,
        step_id=step_id,
    )


def agent_of_step(plan_id: str, step_id: str, calls: int) -> str:
    """The id of the agent that works for a step, the first time or again."""
    return f"agent-{plan_id[:100]}-{step_id[:80]}" + (f"-{calls}" if calls > 1 else "")


def asks_the_same(one: AgentOrder, other: AgentOrder) -> bool:
    """Whether both want the same, so that an agent can go on with it; limits may differ."""
    return (one.request, one.tools, one.output_schema) == (other.request, other.tools, other.output_schema)

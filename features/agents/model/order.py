"""An agent's order (request, tools, limits), and its conversion from and to the arguments of the tool `agent`.

The id of a step's agent is derived from the step's id, so that a resumed plan can find the agent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator

from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.flow.ids import slug
from plansurvive.plans.model import Value
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.views.models.agents import AgentLimits, AgentUsage

_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
MAX_REQUEST = 20_000


class AgentEnd(StrEnum):
    """How an agent's run ended without being stopped from outside."""

    COMPLETED = "completed"
    STALLED = "stalled"
    ITERATIONS = "iterations"
    TOKENS = "tokens"
    TIMEOUT = "timeout"


def limit_reached(limits: AgentLimits, used: AgentUsage) -> AgentEnd | None:
    """The end state for a limit that is used up; None if another LLM request is allowed."""
    reached = {
        AgentEnd.ITERATIONS: used.iterations >= limits.iterations,
        AgentEnd.TOKENS: used.tokens >= limits.tokens,
        AgentEnd.TIMEOUT: used.seconds >= limits.seconds,
    }
    return next((end for end, is_reached in reached.items() if is_reached), None)


class PlanLink(Value):
    """What an agent has told the plan it works for, and what the plan allowed it."""

    asks: bool = Field(default=False, description="The plan has a budget: it is asked before each LLM request.")
    permitted: int = Field(default=0, description="Number of the last LLM request that the plan granted.")
    refusal: str = Field(default="", description="Why the plan grants no further LLM request.")
    since: int = Field(default=0, description="Tool calls up to this number were made before: the plan knows them.")
    known: list[int] = Field(default_factory=list, description="Numbers of further calls that were made before.")
    told: int = Field(default=0, description="All tool calls up to this number were reported.")
    requests: int = Field(default=0, description="LLM requests that the last report counted.")
    reports: int = Field(default=0, description="Number of reports; the more there are, the rarer they become.")
    line: str = Field(default="", description="The last line about its position, which is not repeated.")
    listed: bool = Field(default=False, description="The plan has its task list.")


class AgentOrder(Value):
    """What an agent should do, with which tools and limits."""

    request: str = Field(min_length=1, max_length=MAX_REQUEST, description="The user's request.")
    tools: list[str] | None = Field(default=None, description="Names of the tools it may call; None for all.")
    limits: AgentLimits = Field(default_factory=AgentLimits)
    output_schema: dict[str, Any] | None = Field(default=None, description="JSON Schema of the final answer.")
    plan_id: str = Field(default="", max_length=200, description="Id of the plan it works for, if any.")
    step_id: str = Field(default="", max_length=200, description="Id of the step it works for, if any.")

    @field_validator("output_schema")
    @classmethod
    def _is_schema(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        problem = schema_problem(schema or {})
        if problem:
            raise ValueError(problem)
        return schema


STEP_LIMITS = {"maxCalls": "iterations", "maxTokens": "tokens", "maxSeconds": "seconds"}
"""Limits by their argument name in the tool `agent`."""


def step_args(order: AgentOrder) -> dict[str, Any]:
    """The arguments of the tool `agent` for an order, without the objective and without defaults."""
    limits = {name: getattr(order.limits, field) for name, field in STEP_LIMITS.items()}
    usual = AgentLimits()
    changed = {name: value for name, value in limits.items() if value != getattr(usual, STEP_LIMITS[name])}
    rest = {"tools": order.tools, "outputSchema": order.output_schema}
    return {name: value for name, value in rest.items() if value is not None} | changed


def request_text(order: AgentOrder) -> str:
    """The request as sent to the model, with the schema of the answer if there is one."""
    if order.output_schema is None:
        return order.request
    schema = json.dumps(order.output_schema)
    return f"{order.request}\n\nThe final answer must be JSON that conforms to this schema:\n{schema}"


def order_of_step(args: Mapping[str, Any], plan_id: str, step_id: str) -> AgentOrder:
    """The order of a step of a plan, from its arguments."""
    limits = {field: args[name] for name, field in STEP_LIMITS.items() if args.get(name) is not None}
    return AgentOrder(
        request=args["objective"],
        tools=args.get("tools"),
        limits=AgentLimits.model_validate(limits),
        output_schema=args.get("outputSchema"),
        plan_id=plan_id,
        step_id=step_id,
    )


def agent_of_step(plan_id: str, step_id: str, calls: int) -> str:
    """The id of a step's agent; `calls` numbers the calls of the step, from 1."""
    plain = _PLAIN.fullmatch(step_id) is not None  # as in recorded histories, also where that cuts it
    name = step_id[:80] if plain else slug(step_id)
    return f"{AGENT_PREFIX}{plan_id[:100]}-{name}" + (f"-{calls}" if calls > 1 else "")


def asks_the_same(one: AgentOrder, other: AgentOrder) -> bool:
    """Whether both orders have the same content, so that an agent can be resumed; limits may differ."""
    return (one.request, one.tools, one.output_schema) == (other.request, other.tools, other.output_schema)

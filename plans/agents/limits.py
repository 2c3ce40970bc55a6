"""What an agent's run may use, and the state in which reaching a limit ends it. Usage is measured by the workflow."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from plans.model import Value

MAX_NUDGES = 3
"""Reminders in a row, without a tool call or a finished task between them, after which a run is given up."""


class AgentEnd(StrEnum):
    """How an agent's run ended by itself."""

    COMPLETED = "completed"
    STALLED = "stalled"
    ITERATIONS = "iterations"
    TOKENS = "tokens"
    TIMEOUT = "timeout"


class AgentLimits(Value):
    """What a run may use; reaching one ends it in a state that says so."""

    iterations: int = Field(default=50, ge=1, le=10_000, strict=True, description="Model calls.")
    tokens: int = Field(default=1_000_000, ge=1, strict=True, description="Tokens of all model calls.")
    seconds: float = Field(default=3_600.0, gt=0, description="Time, waiting for people not counted.")
    nudges: int = Field(default=MAX_NUDGES, ge=0, le=100, strict=True, description="Reminders in a row.")


class AgentUsage(Value):
    """What a run has used so far."""

    iterations: int = 0
    tokens: int = 0
    seconds: float = 0.0


def limit_reached(limits: AgentLimits, used: AgentUsage) -> AgentEnd | None:
    """The end state of a run that has used up one of its limits; none while another model call is allowed."""
    reached = {
        AgentEnd.ITERATIONS: used.iterations >= limits.iterations,
        AgentEnd.TOKENS: used.tokens >= limits.tokens,
        AgentEnd.TIMEOUT: used.seconds >= limits.seconds,
    }
    return next((end for end, is_reached in reached.items() if is_reached), None)

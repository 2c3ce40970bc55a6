"""What views say of agents: their task list, limits and usage, what they ask. An agent's state is made of the same."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from plansurvive.plans.model import Value

MAX_NUDGES = 3
"""Consecutive reminders (no tool call or completed task in between) after which a run ends as stalled."""


class TaskStatus(StrEnum):
    """Status of a task."""

    OPEN = "open"
    CURRENT = "current"
    DONE = "done"


class Task(Value):
    """One objective; it may take several tool calls."""

    objective: str = Field(min_length=1, max_length=2_000, description="The objective, in one line.")
    status: TaskStatus = TaskStatus.OPEN
    summary: str = Field(default="", description="What was done, as summarised by the model.")
    note: str = Field(default="", description="Remark of the orchestrator.")
    calls: int = Field(default=0, description="Number of tool calls made for it.")
    doubted: bool = Field(
        default=False, description="The model was asked to confirm that it is completed without any tool call."
    )


class AgentLimits(Value):
    """Limits of a run; one that is reached ends the run in the `AgentEnd` of the same name."""

    iterations: int = Field(default=50, ge=1, le=10_000, strict=True, description="LLM requests.")
    tokens: int = Field(default=1_000_000, ge=1, strict=True, description="Tokens of all LLM requests.")
    seconds: float = Field(default=3_600.0, gt=0, description="Seconds, excluding the time spent waiting for people.")
    nudges: int = Field(default=MAX_NUDGES, ge=0, le=100, strict=True, description="Consecutive reminders.")


class AgentUsage(Value):
    """What a run has used of its limits so far."""

    iterations: int = 0
    tokens: int = 0
    seconds: float = 0.0


class AgentAsksView(Value):
    """What the agent of a step asks people."""

    agent_id: str = Field(description="The agent to decide in.")
    step_ids: list[str] = Field(default_factory=list, description="Its calls that await approval.")


class AgentView(Value):
    """An agent's state, without its tool calls."""

    request: str = ""
    mode: str = "simple"
    tasks: list[Task] = Field(default_factory=list)
    end: str | None = None
    answer: str = ""
    confidence: str | None = None
    usage: AgentUsage = Field(default_factory=AgentUsage)
    limits: AgentLimits = Field(default_factory=AgentLimits)
    plan_id: str | None = Field(default=None, description="Id of the plan it works for, if any.")
    step_id: str | None = None

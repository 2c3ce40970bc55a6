"""The definition of a plan, and a problem of one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from plans.model.control_flow import Expression
from plans.model.notify import Notify
from plans.model.rules import Budget, Defaults, Input
from plans.model.shares import Fairness, Priority
from plans.model.step import Step
from plans.model.values import MAX_PARALLEL, MAX_STEPS, Durable, PlanId, Queue, Seconds, StepId, Value


class Plan(Value):
    """Steps and their dependencies. Every edit gives a new Plan with a higher version."""

    id: PlanId | None = Field(default=None, description="Names the plan; generated if omitted.")
    task_id: PlanId | None = Field(default=None, description="The task the plan serves; the plan's id if omitted.")
    version: int = Field(default=1, ge=1, strict=True, description="Incremented by every edit.")
    title: str = Field(default="", max_length=1_000, description="One line for lists and headings.")
    workspace: str | None = Field(default=None, max_length=4_096, description="Directory the tools work in.")
    inputs: dict[StepId, Input] = Field(default_factory=dict, description="Typed parameters.")
    queue: Queue | None = Field(
        default=None,
        description="Task queue whose workers run the steps; default: that of the workflow.",
    )
    max_parallel: int | None = Field(
        default=None,
        ge=1,
        le=MAX_PARALLEL,
        strict=True,
        description="Maximum number of steps running at the same time.",
    )
    priority: Priority | None = Field(default=None, description="1 (served first) to 5; 3 if omitted.")
    fairness: Fairness | None = Field(
        default=None, description="Whose share of the workers it uses; default: its owner's."
    )
    defaults: Defaults = Field(default_factory=Defaults, description="Defaults for all steps.")
    durable: Durable | None = Field(
        default=None,
        description="Without effect: each call is recorded by itself, before what follows from it.",
    )
    timeout: Seconds | None = Field(
        default=None,
        description="Seconds from its beginning until it must have ended, waiting included: then it fails.",
    )
    workspace_lock: bool = Field(
        default=False, strict=True, description="True: no other plan that says so works in its workspace meanwhile."
    )
    budget: Budget | None = Field(default=None, description="Limits on LLM requests; 50 requests if omitted.")
    notify: Notify = Field(
        default_factory=list,
        description="Who is notified of what: targets of the worker's notify.toml, or rules for them.",
    )
    outputs: dict[StepId, Expression] = Field(
        default_factory=dict,
        description="Its value where it runs as a step: expressions over its steps' values.",
    )
    cache: bool | None = Field(
        default=None,
        strict=True,
        description="Whether results of earlier runs are taken for steps that do not say it themselves.",
    )
    rollback: bool = Field(
        default=False, strict=True, description="True: a plan that fails or is cancelled undoes its steps (`undo`)."
    )
    owns: list[Annotated[str, StringConstraints(min_length=1, max_length=1_000)]] = Field(
        default_factory=list,
        max_length=100,
        description="Paths or patterns of files that this plan's runs may replace without being asked.",
    )
    finally_: list[Step] | None = Field(
        default=None,
        alias="finally",
        min_length=1,
        max_length=MAX_STEPS,
        description="Steps that run when the rest has ended, however it ended.",
    )
    steps: list[Step] = Field(
        max_length=MAX_STEPS,
        description="The steps, in reading order; empty only while the LLM drafts them.",
        json_schema_extra={"minItems": 1},
    )
    estimated_duration: float | None = Field(
        default=None, ge=0, strict=True, description="Estimated seconds, for display."
    )
    created_at: datetime | None = Field(default=None, description="When the plan was written (ISO 8601).")


class Problem(Value):
    """One problem of a plan: what, where, how to fix it. A plan with warnings only may run."""

    code: str = Field(description="Stable, in capitals: PLAN_CYCLE, UNKNOWN_TOOL, ...")
    message: str = Field(description="What is wrong and how to fix it, in a sentence.")
    step_id: str | None = Field(default=None, description="The step it concerns; none: the plan.")
    field: str | None = Field(default=None, description="The field, such as `args.path` or `dependsOn`.")
    severity: Literal["error", "warning"] = "error"

    @property
    def text(self) -> str:
        """The problem on one line: code, step and field, message."""
        place = " ".join(part for part in (f"step '{self.step_id}'" if self.step_id else "", self.field or "") if part)
        return f"{self.code}: {place}: {self.message}" if place else f"{self.code}: {self.message}"

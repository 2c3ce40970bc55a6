"""The definition of a plan, and a problem of one."""

from __future__ import annotations

from datetime import datetime
from enum import Flag, auto
from operator import attrgetter
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from plansurvive.plans.model.control_flow import Expression
from plansurvive.plans.model.express import Express
from plansurvive.plans.model.notify import Notify
from plansurvive.plans.model.rules import Budget, Defaults, Input
from plansurvive.plans.model.shares import Fairness, Priority
from plansurvive.plans.model.step import Step
from plansurvive.plans.model.values import MAX_PARALLEL, MAX_STEPS, Labels, PlanId, Queue, Seconds, StepId, Value


class OfPlan(Flag):
    """Where a field of a plan is used: the marker of each; every list of them in the code is derived from it."""

    NOTHING = 0
    """Whoever starts the plan says it, nobody else; a view always has it."""
    EDIT = auto()
    """A person may change it while the plan runs (update `edit`)."""
    RERUN = auto()
    """A person may change what is in it as an ended plan is resumed or rerun: `--set FIELD.NAME=VALUE`."""
    LLM = auto()
    """An LLM that writes a plan decides it. Any other field is removed from its answer, with a remark."""
    SPARSE = auto()
    """Views have it only if it is set."""
    BATCH = auto()
    """The child plans of a loop with `mode: plans` have it as their parent has it."""


class Plan(Value):
    """Steps and their dependencies. Every edit gives a new Plan with a higher version."""

    id: Annotated[PlanId | None, OfPlan.NOTHING] = Field(
        default=None, description="Names the plan; generated from the title if omitted. An id is never reused."
    )
    task_id: Annotated[PlanId | None, OfPlan.NOTHING] = Field(
        default=None, description="The task the plan serves; the plan's id if omitted."
    )
    version: Annotated[int, OfPlan.NOTHING] = Field(
        default=1, ge=1, strict=True, description="1; incremented by every edit."
    )
    title: Annotated[str, OfPlan.EDIT | OfPlan.LLM] = Field(
        default="", max_length=1_000, description="One line for lists and headings."
    )
    workspace: Annotated[str | None, OfPlan.NOTHING] = Field(
        default=None,
        max_length=4_096,
        description="Directory the tools work in, relative to the plan file; `--workspace` takes precedence.",
    )
    inputs: Annotated[dict[StepId, Input], OfPlan.BATCH] = Field(
        default_factory=dict, description="Typed parameters by name."
    )
    queue: Annotated[Queue | None, OfPlan.NOTHING] = Field(
        default=None,
        description="Task queue whose workers run the steps; default: the queue of the plan's workflow.",
    )
    max_parallel: Annotated[int | None, OfPlan.EDIT] = Field(
        default=None,
        ge=1,
        le=MAX_PARALLEL,
        strict=True,
        description="Steps running at the same time, 1 to 100; default 64.",
    )
    priority: Annotated[Priority | None, OfPlan.NOTHING] = Field(
        default=None,
        description="1 (served first) to 5; 3 if omitted; `--priority` takes precedence "
        "(docs/limits.md#priority-and-fairness).",
    )
    fairness: Annotated[Fairness | None, OfPlan.NOTHING] = Field(
        default=None,
        description="`{key, weight}`: whose share of the workers the plan uses; default: that of who starts it; "
        "`--fairness KEY=WEIGHT` takes precedence.",
    )
    labels: Annotated[Labels, OfPlan.SPARSE] = Field(
        default_factory=dict,
        max_length=20,
        description="What the plan belongs to, by name: `{team: billing, customer: acme}`; lists show it.",
    )
    defaults: Annotated[Defaults, OfPlan.EDIT | OfPlan.BATCH] = Field(
        default_factory=Defaults, description="Defaults for all steps."
    )
    timeout: Annotated[Seconds | None, OfPlan.EDIT] = Field(
        default=None,
        description="Seconds from its start until it must have ended, waiting included; then it fails.",
    )
    workspace_lock: Annotated[bool, OfPlan.SPARSE] = Field(
        default=False, strict=True, description="True: no other plan that says so works in its workspace meanwhile."
    )
    budget: Annotated[Budget | None, OfPlan.EDIT | OfPlan.RERUN] = Field(
        default=None, description="What may be spent on the LLM."
    )
    notify: Annotated[Notify, OfPlan.EDIT | OfPlan.SPARSE] = Field(
        default_factory=list,
        description="Who is notified (docs/notifications.md) of what: the name of a target, a rule `{to, on, remind, "
        "escalate}`, or a list of both.",
    )
    outputs: Annotated[dict[StepId, Expression], OfPlan.SPARSE] = Field(
        default_factory=dict,
        description="The plan's value where it runs as a step of another plan: by name, a JMESPath expression over its "
        "steps' values and inputs.",
    )
    cache: Annotated[bool | None, OfPlan.BATCH] = Field(
        default=None,
        strict=True,
        description="True: for steps that say nothing, the result of an earlier run (docs/cache.md) is taken if tool, "
        "arguments and files are the same; false: never.",
    )
    express: Annotated[bool | Express | None, OfPlan.EDIT | OfPlan.SPARSE | OfPlan.BATCH] = Field(
        default=None,
        description="True, or bounds `{seconds, steps}`: quick steps run several in one activity (docs/express.md); "
        "false: each in its own.",
    )
    rollback: Annotated[bool, OfPlan.SPARSE] = Field(
        default=False, strict=True, description="True: a plan that fails or is cancelled undoes its completed steps."
    )
    owns: Annotated[list[Annotated[str, StringConstraints(min_length=1, max_length=1_000)]], OfPlan.SPARSE] = Field(
        default_factory=list,
        max_length=100,
        description="Paths or patterns of files that this plan's runs may replace without being asked "
        "(docs/schedules.md#runs-that-wait-for-a-person).",
    )
    finally_: Annotated[list[Step] | None, OfPlan.SPARSE] = Field(
        default=None,
        alias="finally",
        min_length=1,
        max_length=MAX_STEPS,
        description="Steps that run when the rest has ended, however it ended.",
    )
    steps: Annotated[list[Step], OfPlan.LLM] = Field(
        max_length=MAX_STEPS,
        description="1 to 20,000 steps, those in blocks included, in reading order.",
        json_schema_extra={"minItems": 1},
    )
    estimated_duration: Annotated[float | None, OfPlan.EDIT | OfPlan.LLM] = Field(
        default=None, ge=0, strict=True, description="Seconds, for display."
    )
    created_at: Annotated[datetime | None, OfPlan.NOTHING] = Field(
        default=None, description="When the plan was written (ISO 8601)."
    )


def plan_names(chosen: OfPlan, model: type[BaseModel] = Plan) -> tuple[str, ...]:
    """The Python names of the fields with this mark. Raises TypeError when a field has no mark, or several."""
    marks = {name: [x for x in info.metadata if isinstance(x, OfPlan)] for name, info in model.model_fields.items()}
    for name, mark in marks.items():
        if len(mark) != 1:
            raise TypeError(f"field '{name}' of {model.__name__} needs one marker `OfPlan`, it has {len(mark)}")
    return tuple(name for name, [mark] in marks.items() if chosen in mark)


def plan_aliases(chosen: OfPlan) -> tuple[str, ...]:
    """The JSON names of the fields with this mark."""
    return tuple(Plan.model_fields[name].alias or name for name in plan_names(chosen))


_kept = attrgetter("code", "message", "step_id", "field", "severity")


class Problem(Value):
    """One problem of a plan: what, where, how to fix it. A plan with warnings only may run."""

    code: str = Field(description="Stable, in capitals: PLAN_CYCLE, UNKNOWN_TOOL, ...")
    message: str = Field(description="What is wrong and how to fix it, in a sentence.")
    step_id: str | None = Field(default=None, description="The step it concerns; none: the plan.")
    field: str | None = Field(default=None, description="The field, such as `args.path` or `dependsOn`.")
    severity: Literal["error", "warning"] = "error"
    name: str = Field(default="", exclude=True, repr=False, description="The name that means nothing there.")

    def __eq__(self, other: object) -> bool:
        """Whether all is the same that is kept: `name` is for who has just found the problem."""
        return isinstance(other, Problem) and _kept(self) == _kept(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def text(self) -> str:
        """The problem on one line: code, step and field, message."""
        place = " ".join(part for part in (f"step '{self.step_id}'" if self.step_id else "", self.field or "") if part)
        return f"{self.code}: {place}: {self.message}" if place else f"{self.code}: {self.message}"

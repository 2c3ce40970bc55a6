"""What is asked for: Plan, Step, and the description of a tool.

Every value here is frozen and serialises to the camelCase JSON of plan files (DESIGN 2.3, seed 004); snake_case is read
as well. Nothing here knows what happened when a plan ran: that is `plans.run`. An unknown field is refused, so that a
misspelt one is never silently ignored.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from plans.step_fields import Asked, Llm, On, Use

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

MAX_STEPS = 20_000
"""Steps a plan may have (FAULTS, rule 6)."""
MAX_PARALLEL = 100
"""Steps of one plan in flight at most: with more completions buffered the server fails a task (TEMPORAL.md 2)."""
DEFAULT_PARALLEL = 64
"""Steps in flight when neither plan nor client says otherwise (TEMPORAL.md 2)."""

StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
"""1 to 128 letters, digits, `_` or `-`: what a reference can name without quoting."""
PlanId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$")]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, strict=True)]


class Value(BaseModel):
    """A frozen value with camelCase JSON names; unknown fields are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True
    )


class Retry(Value):
    """How often a step is tried, and how long it waits: `delay`, then `delay * factor`, ... (seed 004: 1 s, 2 s)."""

    attempts: int = Field(default=3, ge=1, le=100, strict=True, description="Attempts in all, the first included.")
    delay: float = Field(default=1.0, ge=0, le=86_400, strict=True, description="Seconds before the second attempt.")
    factor: float = Field(default=2.0, ge=1, le=100, strict=True, description="Each further wait is this much longer.")


class ApprovalRule(Value):
    """A time limit for the person who is asked, and what happens when it passes."""

    timeout: Seconds | None = Field(default=None, description="Seconds to wait for a decision; none: for ever.")
    on_timeout: Literal["deny", "approve", "fail"] = Field(
        default="deny", description="What stands for the decision when the time is over."
    )


class Input(Value):
    """A typed parameter of a plan, given with `--input name=value`, used as `{{inputs.name}}` or `$inputs.name`."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = Field(
        default="string", description="JSON type of the value."
    )
    description: str = Field(default="", max_length=10_000, description="What the value is for.")
    default: Any = Field(default=None, description="Value when none is given; without one the input is required.")


class Budget(Value):
    """What a run may spend on LLM calls; what is not set is not limited."""

    tokens: int | None = Field(default=None, ge=1, strict=True, description="Tokens in all.")
    calls: int | None = Field(default=50, ge=1, strict=True, description="Calls in all.")
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Time spent on them.")
    warn_at: float = Field(default=0.8, gt=0, le=1, description="Share of any limit at which a warning is due.")
    ask: bool = Field(default=True, description="At the limit a person is asked; false, or a person's no: it stops.")

    def granted(self, share: float = 0.5) -> Budget:
        """The budget after a person allowed more: every limit raised by `share` of itself."""
        raised = 1 + share
        return self.model_copy(
            update={
                "tokens": None if self.tokens is None else int(self.tokens * raised) + 1,
                "calls": None if self.calls is None else int(self.calls * raised) + 1,
                "seconds": None if self.seconds is None else self.seconds * raised,
            }
        )

    def refused(self) -> Budget:
        """The budget after a person said no: the limit is final."""
        return self.model_copy(update={"ask": False})


OnFailure = Literal["block", "ask_llm", "stop"]
"""What follows from a step's last failure: its dependents are blocked, the LLM may mend it, or the plan stops."""


class Defaults(Value):
    """What holds for every step that does not say otherwise."""

    retry: Retry | None = Field(default=None, description="Attempts and waits.")
    timeout: Seconds | None = Field(default=None, description="Seconds one attempt may take.")
    critical: bool = Field(default=False, strict=True, description="A failed step stops the plan.")
    approval: ApprovalRule | None = Field(default=None, description="Time limit of approvals.")
    on_failure: OnFailure = Field(default="block", description="What follows from a step's last failure.")
    approve_recovery: bool = Field(
        default=False, strict=True, description="A person decides on what the LLM wants done about a failed step."
    )


class Step(Value):
    """One call of one tool, started when everything it depends on is done."""

    id: Annotated[StepId, Use(On.NOTHING, Asked(1, '"step_1"', "step_1, step_2, ..."))] = Field(
        description="Names the step: 1 to 128 letters, digits, `_` or `-`."
    )
    tool: Annotated[ToolName, Use(On.EDIT | On.APPROVAL | On.FORM, Asked(3, '"..."'))] = Field(
        description="The tool to call; `plan tools` lists them."
    )
    args: Annotated[dict[str, Any], Use(On.EDIT | On.RERUN | On.APPROVAL | On.FORM, Asked(4, "{...}"))] = Field(
        default_factory=dict, description="The tool's arguments; may hold references."
    )
    description: Annotated[
        str, Use(On.EDIT | On.RERUN | On.FORM, Asked(2, '"..."', "What the step does, clear and specific"))
    ] = Field(default="", max_length=10_000, description="What the step does, for people.")
    depends_on: Annotated[list[StepId], Use(On.EDIT | On.FORM, Asked(5, "[]", "Ids of steps that come first"))] = Field(
        default_factory=list, description="Steps that must be done first."
    )
    order: Annotated[int | None, Use(On.NOTHING, Llm.MAY)] = Field(
        default=None, ge=0, strict=True, description="Place in the list; for display only."
    )
    critical: Annotated[bool | None, Use(On.EDIT, Asked(7, "false", "true: the plan stops when it fails"))] = Field(
        default=None, strict=True, description="When it fails, the plan stops."
    )
    requires_approval: Annotated[
        bool | None,
        Use(On.EDIT | On.RERUN | On.APPROVAL | On.FORM, Asked(6, "false", "true: a person is asked before it runs")),
    ] = Field(
        default=None, strict=True, description="A person decides before it starts; false waives the tool's own rule."
    )
    approval: Annotated[ApprovalRule | None, Use(On.EDIT, Llm.NEVER)] = Field(
        default=None, description="Time limit of that decision."
    )
    retry: Annotated[Retry | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="Attempts and waits."
    )
    repeatable: Annotated[bool | None, Use(On.EDIT, Llm.MAY)] = Field(
        default=None, strict=True, description="False: one attempt only; when its worker dies, it may have happened."
    )
    timeout: Annotated[Seconds | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="Seconds one attempt may take."
    )
    when: Annotated[str | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, max_length=1_000, description="JMESPath over finished steps and inputs; false skips the step."
    )
    on_failure: Annotated[OnFailure | None, Use(On.EDIT | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="block, ask_llm: the LLM may mend it; or stop."
    )
    queue: Annotated[str | None, Use(On.EDIT | On.DETAILS, Llm.FIRST_DRAFT)] = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="Task queue whose workers run the step: those with its files or capability.",
    )
    notes: Annotated[str, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default="", max_length=10_000, description="Remarks, shown under the step."
    )


class Plan(Value):
    """What is asked for: steps and their dependencies. Each change makes a new one with a higher version."""

    id: PlanId | None = Field(default=None, description="Names the plan; made when it starts, if not given.")
    task_id: PlanId | None = Field(default=None, description="The task the plan serves; the plan's id if not given.")
    version: int = Field(default=1, ge=1, strict=True, description="Rises with every change.")
    title: str = Field(default="", max_length=1_000, description="One line for lists and headings.")
    workspace: str | None = Field(default=None, max_length=4_096, description="Directory the tools work in.")
    inputs: dict[StepId, Input] = Field(default_factory=dict, description="Typed parameters.")
    queue: str | None = Field(
        default=None, min_length=1, max_length=200, description="Task queue whose workers run the steps."
    )
    max_parallel: int | None = Field(
        default=None, ge=1, le=MAX_PARALLEL, strict=True, description="Steps running at the same time, at most."
    )
    defaults: Defaults = Field(default_factory=Defaults, description="What holds for steps that say nothing else.")
    budget: Budget | None = Field(default=None, description="What may be spent on the LLM; 50 calls if not said.")
    steps: list[Step] = Field(
        max_length=MAX_STEPS,
        description="The steps, in reading order; none only while the LLM writes them.",
        json_schema_extra={"minItems": 1},
    )
    estimated_duration: float | None = Field(default=None, ge=0, strict=True, description="Seconds, estimated.")
    created_at: datetime | None = Field(default=None, description="When the plan was made (ISO 8601).")


class Problem(Value):
    """One thing wrong with a plan: where, and how to mend it. A warning does not keep the plan from running."""

    code: str = Field(description="Stable, in capitals: PLAN_CYCLE, UNKNOWN_TOOL, ...")
    message: str = Field(description="A sentence that says what is wrong and how to mend it.")
    step_id: str | None = Field(default=None, description="The step it is about, if one.")
    field: str | None = Field(default=None, description="The field in it: `args.path`, `dependsOn`.")
    severity: Literal["error", "warning"] = "error"

    @property
    def text(self) -> str:
        """The problem on one line, place first."""
        place = " ".join(part for part in (f"step '{self.step_id}'" if self.step_id else "", self.field or "") if part)
        return f"{self.code}: {place}: {self.message}" if place else f"{self.code}: {self.message}"


class ToolSpec(Value):
    """A tool as plans, people and models see it. Made from the tool's signature and docstring, never by hand."""

    name: ToolName = Field(description="The step's `tool`, and the activity type in Temporal.")
    description: str = Field(description="What it does, from the docstring.")
    args_schema: dict[str, Any] = Field(description="JSON Schema of the arguments object.")
    value: str = Field(default="", description="What its value looks like.")
    approval: Literal["never", "always"] = Field(default="never", description="Whether a person is asked by default.")
    approval_exempt: dict[str, list[Any]] = Field(
        default_factory=dict, description="Arguments whose listed values need no approval: {'method': ['GET', 'HEAD']}."
    )
    effect: Literal["pure", "keyed", "opaque"] = Field(
        default="opaque", description="pure: reads only; keyed: can tell its own effect; opaque: neither."
    )
    timeout: float = Field(default=60.0, description="Seconds one attempt may take, when the step does not say.")
    retry: Retry | None = Field(default=None, description="Attempts and waits, when the step does not say.")
    repeatable: bool = Field(
        default=True, description="False: one attempt only, and none after the death of its worker (OUTCOME_UNKNOWN)."
    )
    quoting: dict[str, Literal["shell", "python"]] = Field(
        default_factory=dict, description="Arguments that are code: inserted values are quoted for that language."
    )
    durable: bool = Field(default=False, description="Done by the workflow itself (a timer), not by an activity.")

    @cached_property
    def validator(self) -> Draft202012Validator:
        """Judges arguments by the schema. Made once: that takes as long as judging a step."""
        from jsonschema import Draft202012Validator  # a tenth of the time `plan list` takes, which judges nothing

        return Draft202012Validator(self.args_schema)

    def asks_by_default(self, args: dict[str, Any]) -> bool:
        """Whether a person must approve a call with these arguments, unless the step says otherwise."""
        if self.approval == "never":
            return False
        for name, exempt in self.approval_exempt.items():
            default = self.args_schema.get("properties", {}).get(name, {}).get("default")
            if args.get(name, default) in exempt:
                return False
        return True

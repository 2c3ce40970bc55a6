"""The definition of a plan: Plan, Step, their parts, and ToolSpec, the description of a tool.

Every value is frozen and serialises to the camelCase JSON of plan files; snake_case is accepted as well (DESIGN 2.3,
seed 004). The state of a run is in `plans.run`. An unknown field is an error, so a misspelt one is never ignored.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from plans.definition.receivers import receives
from plans.step_fields import Asked, Llm, On, Use

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

MAX_STEPS = 20_000
"""Maximum number of steps in a plan (FAULTS, rule 6)."""
MAX_PARALLEL = 100
"""Maximum number of steps of a plan in flight; with more buffered completions, workflow tasks fail (TEMPORAL.md 2)."""
DEFAULT_PARALLEL = 64
"""Steps in flight when neither the plan nor the client sets `maxParallel` (TEMPORAL.md 2)."""

StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,127}$")]
"""1 to 128 letters, digits, `_` or `-`, so that a reference can name the step without quoting."""
PlanId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$")]
ToolName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


def _not_reserved(queue: str) -> str:
    if queue.startswith("/_sys/"):
        raise ValueError("a task queue cannot begin with /_sys/, which Temporal reserves")
    return queue


Queue = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_not_reserved)]
"""A task queue. With another name, the server refuses every activity, and the workflow task that starts it."""
Seconds = Annotated[float, Field(gt=0, le=31_536_000, strict=True)]


class Value(BaseModel):
    """A frozen value with camelCase JSON names; an unknown field is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, serialize_by_alias=True
    )


class Retry(Value):
    """Attempts of a step, and the delays between them: `delay`, then `delay * factor`, ... (seed 004: 1 s, 2 s)."""

    attempts: int = Field(default=3, ge=1, le=100, strict=True, description="Attempts in total, the first included.")
    delay: float = Field(default=1.0, ge=0, le=86_400, strict=True, description="Seconds before the second attempt.")
    factor: float = Field(
        default=2.0, ge=1, le=100, strict=True, description="Each further delay is longer by this factor."
    )


class ApprovalRule(Value):
    """The time limit of an approval, and what happens when it expires."""

    timeout: Seconds | None = Field(default=None, description="Seconds to await a decision; unlimited if omitted.")
    on_timeout: Literal["deny", "approve", "fail"] = Field(
        default="deny", description="What happens when the time limit expires."
    )


class Input(Value):
    """A typed parameter of a plan: set with `--input name=value`, used as `{{inputs.name}}` or `$inputs.name`."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = Field(
        default="string", description="JSON type of the value."
    )
    description: str = Field(default="", max_length=10_000, description="What the value is for.")
    default: Any = Field(default=None, description="Value if none is given; an input without a default is required.")


class Budget(Value):
    """Limits on what a run may spend on LLM requests; a field that is not set means no limit."""

    tokens: int | None = Field(default=None, ge=1, strict=True, description="Tokens in total.")
    calls: int | None = Field(default=50, ge=1, strict=True, description="Requests in total.")
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False, description="Time spent on them.")
    warn_at: float = Field(default=0.8, gt=0, le=1, description="Fraction of a limit at which a log entry warns.")
    ask: bool = Field(
        default=True, description="True: at a limit a person is asked to extend it; false: it fails with LLM_BUDGET."
    )

    def granted(self, share: float = 0.5) -> Budget:
        """The budget after a person extended it: every limit raised by `share` of itself."""
        raised = 1 + share
        return self.model_copy(
            update={
                "tokens": None if self.tokens is None else int(self.tokens * raised) + 1,
                "calls": None if self.calls is None else int(self.calls * raised) + 1,
                "seconds": None if self.seconds is None else self.seconds * raised,
            }
        )

    def refused(self) -> Budget:
        """The budget after a person refused to extend it: the limits are final."""
        return self.model_copy(update={"ask": False})


OnFailure = Literal["block", "ask_llm", "stop"]
"""What follows from a step's last failure: its dependents are blocked, the LLM may recover it, or the plan stops."""


class Defaults(Value):
    """Defaults for the steps that do not set a field themselves."""

    retry: Retry | None = Field(default=None, description="Attempts and delays.")
    timeout: Seconds | None = Field(default=None, description="Seconds one attempt may take.")
    critical: bool = Field(default=False, strict=True, description="Steps are critical: a failure stops the plan.")
    approval: ApprovalRule | None = Field(default=None, description="Time limit of approvals.")
    on_failure: OnFailure = Field(default="block", description="What follows from the last failure.")
    approve_recovery: bool = Field(
        default=False, strict=True, description="A person approves each recovery that the LLM proposes."
    )


class Step(Value):
    """One call of one tool, started when all its dependencies are done."""

    id: Annotated[StepId, Use(On.NOTHING, Asked(1, '"step_1"', "step_1, step_2, ..."))] = Field(
        description="Names the step: 1 to 128 letters, digits, `_` or `-`."
    )
    tool: Annotated[ToolName, Use(On.EDIT | On.APPROVAL | On.FORM, Asked(3, '"..."'))] = Field(
        description="The tool to call; `plan tools` lists them."
    )
    args: Annotated[dict[str, Any], Use(On.EDIT | On.RERUN | On.APPROVAL | On.FORM, Asked(4, "{...}"))] = Field(
        default_factory=dict, description="The tool's arguments; may contain references."
    )
    description: Annotated[
        str, Use(On.EDIT | On.RERUN | On.FORM, Asked(2, '"..."', "What the step does, clear and specific"))
    ] = Field(default="", max_length=10_000, description="What the step does, for people to read.")
    depends_on: Annotated[list[StepId], Use(On.EDIT | On.FORM, Asked(5, "[]", "Ids of steps that come first"))] = Field(
        default_factory=list, description="Steps that must be done first."
    )
    order: Annotated[int | None, Use(On.NOTHING, Llm.MAY)] = Field(
        default=None, ge=0, strict=True, description="Position in the list, for display only."
    )
    critical: Annotated[bool | None, Use(On.EDIT, Asked(7, "false", "true: the plan stops when it fails"))] = Field(
        default=None, strict=True, description="True: when the step fails, the plan stops."
    )
    requires_approval: Annotated[
        bool | None,
        Use(On.EDIT | On.RERUN | On.APPROVAL | On.FORM, Asked(6, "false", "true: a person is asked before it runs")),
    ] = Field(
        default=None,
        strict=True,
        description="True: a person must approve it before it starts; false: waives the tool's own rule.",
    )
    approval: Annotated[ApprovalRule | None, Use(On.EDIT, Llm.NEVER)] = Field(
        default=None, description="Time limit of the approval."
    )
    retry: Annotated[Retry | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="Attempts and delays."
    )
    repeatable: Annotated[bool | None, Use(On.EDIT, Llm.MAY)] = Field(
        default=None,
        strict=True,
        description="False: one attempt only; if its worker dies, the outcome is unknown (OUTCOME_UNKNOWN).",
    )
    timeout: Annotated[Seconds | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="Seconds one attempt may take."
    )
    when: Annotated[str | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None,
        max_length=1_000,
        description="JMESPath over finished steps and inputs; if false, the step is skipped.",
    )
    on_failure: Annotated[OnFailure | None, Use(On.EDIT | On.DETAILS, Llm.MAY)] = Field(
        default=None,
        description="After the last failure: block its dependents, ask_llm to recover it, or stop the plan.",
    )
    queue: Annotated[Queue | None, Use(On.EDIT | On.APPROVAL | On.DETAILS, Llm.NEVER)] = Field(
        default=None,
        description="Task queue whose workers run the step: those with its files, programs or rights.",
    )
    notes: Annotated[str, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default="", max_length=10_000, description="Remarks, shown under the step."
    )


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
    defaults: Defaults = Field(default_factory=Defaults, description="Defaults for all steps.")
    budget: Budget | None = Field(default=None, description="Limits on LLM requests; 50 requests if omitted.")
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


class ToolSpec(Value):
    """The description of a tool for plans, people and LLMs, derived from its signature and docstring."""

    name: ToolName = Field(description="The step's `tool`, and the activity type in Temporal.")
    description: str = Field(description="What it does, from the docstring.")
    args_schema: dict[str, Any] = Field(description="JSON Schema of the arguments object.")
    value: str = Field(default="", description="What its result value looks like.")
    approval: Literal["never", "always"] = Field(default="never", description="Whether calls need approval by default.")
    approval_exempt: dict[str, list[Any]] = Field(
        default_factory=dict, description="Arguments whose listed values need no approval: {'method': ['GET', 'HEAD']}."
    )
    sends: dict[str, Literal["always", "values"]] = Field(
        default_factory=dict,
        description="Arguments that leave the machine. An exempt call needs approval if it gives one marked `always`,"
        " or if one holds a step's value or a model's choice, unless the host of its `url` is one of `receivers`.",
    )
    receivers: list[str] = Field(
        default_factory=list, description="Hosts that may receive without approval: PLANS_HTTP_ALLOW of the worker."
    )
    effect: Literal["pure", "keyed", "opaque"] = Field(
        default="opaque", description="pure: only reads; keyed: can recognise its own effect; opaque: neither."
    )
    timeout: float = Field(default=60.0, description="Seconds one attempt may take, if the step sets no limit.")
    retry: Retry | None = Field(default=None, description="Attempts and delays, if the step sets none.")
    repeatable: bool = Field(
        default=True,
        description="False: one attempt only; if its worker dies, the outcome is unknown (OUTCOME_UNKNOWN).",
    )
    quoting: dict[str, Literal["shell", "python"]] = Field(
        default_factory=dict, description="Arguments that are code: inserted values are quoted for that language."
    )
    durable: bool = Field(
        default=False, description="Run by the workflow itself (a timer or a child), not as an activity."
    )

    @cached_property
    def validator(self) -> Draft202012Validator:
        """Validates arguments against the schema. Cached: building it takes as long as validating one step."""
        from jsonschema import Draft202012Validator  # the import takes a tenth of `plan list`, which validates nothing

        return Draft202012Validator(self.args_schema)

    def asks_by_default(self, args: dict[str, Any], carries: bool = False) -> bool:
        """Whether a call with these arguments needs approval, unless the step overrides it.

        `carries`: a step's value or a model's choice is in one of the arguments that it sends.
        """
        if self.approval == "never":
            return False
        for name, exempt in self.approval_exempt.items():
            default = self.args_schema.get("properties", {}).get(name, {}).get("default")
            if args.get(name, default) in exempt:
                return self._sends(args, carries)
        return True

    def _sends(self, args: dict[str, Any], carries: bool) -> bool:
        """Whether a call sends something to a host that is not one of `receivers`."""
        given = any(when == "always" and args.get(name) is not None for name, when in self.sends.items())
        return bool(self.sends) and (carries or given) and not receives(args.get("url"), self.receivers)

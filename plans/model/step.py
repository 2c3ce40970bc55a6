"""The definition of a step: one call of one tool, or steps of its own, and how it is repeated, caught and undone.

No status is `denied`: a denied step is `skipped`, with the code DENIED, and views count it apart.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from plansurvive.plans.model.caching import Cache
from plansurvive.plans.model.control_flow import Expression, ForEach, Repeat
from plansurvive.plans.model.express import Express
from plansurvive.plans.model.rules import ApprovalRule, OnFailure, Retry
from plansurvive.plans.model.step_fields import Asked, Llm, Offered, On, Use
from plansurvive.plans.model.values import MAX_STEPS, Queue, Seconds, StepId, ToolName, Value

NO_TOOL = "step_without_tool"
"""Type of the error of a step that has none of tool, steps and switch, or several of them."""

MAX_CODES = 50
"""Maximum number of error codes that one `catch` names."""


class Case(Value):
    """One alternative of a `switch`."""

    when: Expression | None = Field(
        default=None, description="A condition; a case without one always holds, and comes last."
    )
    steps: list[Step] = Field(
        min_length=1, max_length=MAX_STEPS, description="The steps that run if it is the first that holds."
    )


class Catch(Value):
    """Steps that run when a step has failed for the last time; it then counts as completed, with their value."""

    codes: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(
        default_factory=list,
        max_length=MAX_CODES,
        description="Codes (docs/reference/errors.md#steps) of the errors to catch; none: any.",
    )
    steps: list[Step] = Field(
        min_length=1,
        max_length=MAX_STEPS,
        description="The steps that run instead; `{{error.code}}` and `{{error.message}}` say what happened.",
    )


class Undo(Value):
    """What takes back the effect of a step: one call of a tool, or steps; `{{value}}` is the step's value."""

    tool: ToolName | None = Field(default=None, description="The tool to call.")
    args: dict[str, Any] = Field(
        default_factory=dict, description="Its arguments; `{{value}}` is the value of the step that is undone."
    )
    steps: list[Step] | None = Field(
        default=None, min_length=1, max_length=MAX_STEPS, description="Steps instead of a tool."
    )
    requires_approval: bool | None = Field(
        default=None,
        strict=True,
        description="Of a tool, as that of a step: true: a person must approve it; false: waives the approval that the "
        "tool needs by default.",
    )

    @model_validator(mode="after")
    def _one_of(self) -> Undo:
        if (self.tool is None) == (self.steps is None):
            raise ValueError("an undo has either a tool or steps; write one of them")
        if self.steps is not None and self.requires_approval is not None:
            raise ValueError("requiresApproval of an undo is about its tool; write it in the steps instead")
        return self


def _required(schema: dict[str, Any]) -> None:
    """Keep the default out of the published schema: an editor would insert it, and it is not a tool."""
    schema.pop("default", None)


def _or_items(schema: dict[str, Any]) -> None:
    """Let the published schema accept the short form, in which `forEach` is the list itself."""
    schema["anyOf"] = [*schema["anyOf"], {"type": "string"}, {"type": "array"}]


class Step(Value):
    """One call of one tool, or a block of steps, started when all its dependencies are done.

    It has a `tool`, or `steps` (a block), or `switch` (one of several blocks).
    """

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [name]} for name in ("tool", "steps", "switch")]}
    )

    id: Annotated[StepId, Use(On.NOTHING, Asked(1, '"step_1"', "step_1, step_2, ..."))] = Field(
        description="Names the step: 1 to 128 letters, digits, `_` or `-`; required."
    )
    tool: Annotated[ToolName, Use(On.EDIT | On.APPROVAL | On.FORM, Asked(3, '"..."'))] = Field(
        default="",
        description="The tool to call; `plan tools` lists them. A step has a tool, or `steps`, or `switch`.",
        json_schema_extra=_required,
    )
    args: Annotated[dict[str, Any], Use(On.EDIT | On.RERUN | On.APPROVAL | On.FORM, Asked(4, "{...}"))] = Field(
        default_factory=dict, description="The tool's arguments, at most 64 KiB; may contain references."
    )
    description: Annotated[
        str, Use(On.EDIT | On.RERUN | On.FORM, Asked(2, '"..."', "What the step does, clear and specific"))
    ] = Field(
        default="", max_length=10_000, description="What the step does; shown in all views and in the Temporal UI."
    )
    depends_on: Annotated[list[StepId], Use(On.EDIT | On.FORM, Asked(5, "[]", "Ids of steps that come first"))] = Field(
        default_factory=list, description="Steps that must be done first, in addition to those it references."
    )
    order: Annotated[int | None, Use(On.NOTHING, Llm.MAY)] = Field(
        default=None, ge=0, strict=True, description="Position in the list, for display only."
    )
    critical: Annotated[bool | None, Use(On.EDIT, Asked(7, "false", "true: the plan stops when it fails"))] = Field(
        default=None,
        strict=True,
        description="True: when the step fails, the plan fails: running steps may finish, nothing else starts.",
    )
    requires_approval: Annotated[
        bool | None,
        Use(On.EDIT | On.RERUN | On.APPROVAL | On.FORM, Asked(6, "false", "true: a person is asked before it runs")),
    ] = Field(
        default=None,
        strict=True,
        description="True: a person must approve it before it starts; false: waives the approval that the tool needs "
        "by default.",
    )
    approval: Annotated[ApprovalRule | None, Use(On.EDIT, Llm.NEVER)] = Field(
        default=None, description="Who must approve it, and the time limit of that."
    )
    retry: Annotated[Retry | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="Attempts and delays."
    )
    repeatable: Annotated[bool | None, Use(On.EDIT, Llm.MAY)] = Field(
        default=None,
        strict=True,
        description="False: one attempt only; if its worker dies, the step ends as `OUTCOME_UNKNOWN`.",
    )
    timeout: Annotated[Seconds | None, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default=None, description="Seconds one attempt may take; default: the tool's own limit."
    )
    when: Annotated[
        str | None, Use(On.EDIT | On.RERUN | On.DETAILS, Offered("Condition: false skips the step", resets=False))
    ] = Field(
        default=None,
        max_length=1_000,
        description="A condition, JMESPath over finished steps and inputs; false skips the step.",
    )
    on_failure: Annotated[OnFailure | None, Use(On.EDIT | On.DETAILS, Llm.MAY)] = Field(
        default=None,
        description="`block` (default): its dependents are blocked; `ask_llm`: the LLM recovers it "
        "(docs/planning.md#recovering); `stop`: as `critical`.",
    )
    queue: Annotated[Queue | None, Use(On.EDIT | On.APPROVAL | On.DETAILS, Llm.NEVER)] = Field(
        default=None,
        description="Task queue whose workers run the step: those with its files, programs or rights.",
    )
    notes: Annotated[str, Use(On.EDIT | On.RERUN | On.DETAILS, Llm.MAY)] = Field(
        default="", max_length=10_000, description="Remarks, shown under the step."
    )
    steps: Annotated[
        list[Step] | None,
        Use(On.EDIT | On.APPROVAL, Offered("Steps of the block, a JSON array written as text", of_blocks=True)),
    ] = Field(default=None, min_length=1, max_length=MAX_STEPS, description="A block: steps instead of a tool.")
    output: Annotated[
        str | None,
        Use(On.EDIT | On.RERUN | On.DETAILS, Offered("Expression over the values of its steps", of_blocks=True)),
    ] = Field(
        default=None,
        max_length=1_000,
        description="Value of a block: a JMESPath expression over the values of its steps; default: all of them, by "
        "step.",
    )
    switch: Annotated[
        list[Case] | None,
        Use(On.EDIT | On.APPROVAL, Offered("Alternatives, a JSON array written as text", of_blocks=True)),
    ] = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="Alternatives instead of a tool: the first whose condition holds runs.",
    )
    for_each: Annotated[
        ForEach | None,
        Use(
            On.EDIT | On.APPROVAL | On.RERUN | On.DETAILS,
            Offered("The list: a reference, or a JSON object written as text"),
        ),
    ] = Field(
        default=None,
        description="The step runs once for each item of a list.",
        json_schema_extra=_or_items,
    )
    repeat: Annotated[
        Repeat | None,
        Use(On.EDIT | On.APPROVAL | On.RERUN | On.DETAILS, Offered("A JSON object with `until`, written as text")),
    ] = Field(default=None, description="The step runs again until a condition over its value holds.")
    catch: Annotated[
        list[Catch] | None,
        Use(On.EDIT | On.APPROVAL, Offered("What to do when it has failed, a JSON array written as text")),
    ] = Field(
        default=None,
        min_length=1,
        max_length=20,
        description="What to do instead when it has failed for the last time, by error code.",
    )
    finally_: Annotated[list[Step] | None, Use(On.EDIT | On.APPROVAL, Llm.MAY)] = Field(
        default=None,
        alias="finally",
        min_length=1,
        max_length=MAX_STEPS,
        description="Steps of a block that run when its others have ended, however they ended.",
    )
    cache: Annotated[bool | Cache | None, Use(On.EDIT | On.DETAILS, Llm.NEVER)] = Field(
        default=None,
        description="True, or `{reads, outside}`: the result of an earlier run (docs/cache.md) is taken if tool, "
        "arguments and files are the same; false: the tool is called.",
    )
    express: Annotated[bool | Express | None, Use(On.EDIT | On.DETAILS, Llm.MAY)] = Field(
        default=None,
        description="Of a block or loop: true, or bounds `{seconds, steps}`: its quick steps run several in one "
        "activity (docs/express.md); false: each in its own.",
    )
    worktree: Annotated[bool | None, Use(On.EDIT | On.APPROVAL | On.DETAILS, Llm.NEVER)] = Field(
        default=None,
        strict=True,
        description="True: the step or block works in a git worktree of its own, on a branch (docs/worktrees.md).",
    )
    undo: Annotated[Undo | None, Use(On.EDIT | On.APPROVAL, Llm.MAY)] = Field(
        default=None,
        description="What takes back its effect, when the plan fails or is cancelled and rolls back, or is undone.",
    )

    @property
    def is_block(self) -> bool:
        """Whether it has steps of its own instead of a tool."""
        return self.steps is not None or self.switch is not None

    @model_validator(mode="after")
    def _one_of(self) -> Step:
        if bool(self.tool) + bool(self.steps) + bool(self.switch) != 1:
            given = [name for name in ("tool", "steps", "switch") if getattr(self, name)]
            what = f"it has {' and '.join(given)}; remove all but one" if given else "'tool' is missing; add it"
            text = f"{what} (a block has 'steps' or 'switch' instead of a tool)"
            raise PydanticCustomError(NO_TOOL, "{text}", {"text": text})
        return self


for _model in (Case, Catch, Undo, Step):  # they hold each other
    _model.model_rebuild()

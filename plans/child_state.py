"""What a plan keeps of its child plans, and a child plan of its parent. Values of `Run` and `StepState`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.model import Value
from plansurvive.plans.model.opaque import STEPS
from plansurvive.plans.model.parts import Part

MAX_NESTING = 8
"""Deepest child plan below the plan that a person started: one that runs itself ends here (NESTED_TOO_DEEP)."""
MAX_ASKED = 20
"""Pending decisions of a child plan that its parent lists; `plan pending CHILD` lists all."""

Kind = Literal["inline", "file", "template"]
Hashes = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=200)]
ShortText = Annotated[str, Field(max_length=1_000)]


class Asked(Value):
    """A decision that a child plan, or one further below, awaits."""

    plan_id: Annotated[str, Field(max_length=200)] = Field(description="Id of the plan to decide in.")
    step_id: ShortText
    path: ShortText = Field(description="The step as the parent names it: `deploy/upload`.")
    kind: Annotated[str, Field(max_length=40)] = "approval"


class ChildReport(Value):
    """What a child plan tells its parent about itself; everything that the parent's views show of it."""

    status: Annotated[str, Field(max_length=20)]
    counts: dict[Annotated[str, Field(max_length=20)], Annotated[int, Field(ge=0, le=10**9)]] = Field(
        default_factory=dict, max_length=20, description="Steps by status, and in total."
    )
    pending: list[Asked] = Field(default_factory=list, max_length=MAX_ASKED, description="Decisions that it awaits.")
    more: int = Field(default=0, ge=0, le=10**9, description="Number of further ones.")
    failed_items: int = Field(default=0, ge=0, le=10**9, description="Of a batch of a loop: how many items failed.")
    undos: int = Field(default=0, ge=0, le=10**9, description="Of one that has ended: steps that are to be undone.")
    tool_undos: int = Field(
        default=0, ge=0, le=10**9, description="Further ones, which only `plan undo` undoes: their tools say how."
    )
    denied_items: int = Field(default=0, ge=0, le=10**9, description="Of one that has ended: how many were denied.")
    lacks_answers: bool = Field(default=False, description="Of one that has ended: it lacks nothing but decisions.")


class ChildPlan(Value):
    """The child plan of a step, as its parent knows it."""

    kind: Kind
    named: str = Field(default="", description="The file or template as the step names it.")
    source: str = Field(default="", description="The path, or NAME@HASH of the template; empty for inline steps.")
    sha256: str = Field(default="", description="Hash of the content that was loaded; empty for inline steps.")
    data: Any = Field(default=None, description="The content, until the step has completed.")
    plan_id: str = Field(default="", description="Id of the child plan, once it has started.")
    title: str = ""
    report: ChildReport | None = Field(default=None, description="As last reported.")
    value: Any = Field(default=None, description="Of a batch in which items failed: the values of all of them.")
    large: LargeValue | None = Field(default=None, description="The same, if it is stored outside history.")


class AtWork(Part):
    """Part of a step: what its plan knows of the agent or child plan that works on it."""

    feature: ClassVar[str] = "children"

    child: ChildPlan | None = Field(default=None, description="The plan that it runs, of a step with the tool `plan`.")
    tasks: list[str] = Field(default_factory=list, description="The task list of its agent, in order.")
    done: int = Field(default=0, ge=0, description="How many of them are done, counted from the first.")
    asks: list[str] = Field(default_factory=list, description="Calls of its agent that await approval, there.")


class ParentLink(Value):
    """What a child plan knows of the plan that it works for, and what it has told it."""

    plan_id: str = Field(max_length=200, description="Id of the parent.")
    step_id: str = Field(max_length=1_000, description="Id of the step in it.")
    depth: int = Field(default=1, ge=1, le=MAX_NESTING, description="Plans above it.")
    asks: bool = Field(default=False, description="The parent has a budget: it is asked before each LLM request.")
    asked: int = Field(default=0, ge=0, description="Number of LLM requests that it wanted to send so far.")
    used: int = Field(default=0, ge=0, description="Of these, how many it has begun.")
    permitted: int = Field(default=0, ge=0, description="Number of LLM requests that the parent has granted.")
    refusal: str = Field(default="", description="Why the parent grants no further one.")


def loaded(state: ChildPlan | None, args: Mapping[str, Any]) -> str:
    """The hash of the content that was loaded for a call with these arguments; empty if none was, or need not be."""
    if state is None or not state.named or state.named not in (args.get("file"), args.get("template")):
        return ""
    return state.sha256


def must_load(state: ChildPlan | None, args: Mapping[str, Any]) -> bool:
    """Whether the content of the plan must be loaded before it is known what the step would do."""
    return args.get(STEPS) is None and not loaded(state, args)

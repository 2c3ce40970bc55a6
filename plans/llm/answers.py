"""Parses a model's text into a typed answer, or into an AnswerProblem that the model can correct.

The activity `ask_llm` reads the text as the `AnswerKind` says; the workflow reads the value again (`workflows.llm`).

A valid answer is one JSON object; a code fence and prose around it are ignored. An empty text, prose only, two objects,
a truncated object, unknown tools and bad arguments yield an `AnswerProblem` (LLM_BAD_ANSWER): it says what is wrong
and what to do, and is sent back to the model. Fields that only a person or the worker may set (waived approvals,
workspace, limits) are removed from an answer and reported in its `notes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.llm.chosen_tools import Offered
from plansurvive.plans.llm.json_extraction import AnswerProblem, json_object
from plansurvive.plans.llm.own_fields import own_fields
from plansurvive.plans.llm.schemas import Schema, loosened
from plansurvive.plans.model import Plan, Step, ToolSpec, Value

Tools = Mapping[str, ToolSpec]
MAX_STEPS = 200
"""Maximum number of steps in a plan written by an LLM: more than a person would review."""
MAX_INSERTED = 20
"""Maximum number of steps that a recovery may insert."""


class Expected(Value):
    """The expected kind of answer, and the tools to validate it against. Part of the request."""

    kind: str = Field(description="Name of the `AnswerKind`.")
    tools: list[ToolSpec] = Field(default_factory=list, description="Tools that the answer may use.")
    failed: str = Field(default="", description="For a recovery: name of the failed step's tool.")
    about: str = Field(default="", description="The request, by which tools of servers are chosen for the prompt.")

    @property
    def specs(self) -> dict[str, ToolSpec]:
        """The tools by name."""
        return {spec.name: spec for spec in self.tools}


@dataclass(frozen=True)
class AnswerKind:
    """A kind of answer that a feature asks for: how the model is told its form, and how its text is read."""

    name: str
    schema: Callable[[Offered, Expected], Schema]
    read: Callable[[str, Expected], Value | AnswerProblem]
    is_sent_back: bool = False
    """The workflow may reject what was read, and send the text back: it is kept."""

    def schema_of(self, expected: Expected) -> Schema:
        """The JSON Schema of an expected answer."""
        return self.schema(Offered.of(expected.tools, expected.about), expected)


class PlanAnswer(Value):
    """A plan written by a model: well-formed, not validated yet."""

    plan: Plan
    notes: list[str] = Field(default_factory=list, description="What was removed from the answer, and why.")


class Recovery(Value):
    """A model's decision about a failed step."""

    action: Literal["retry", "skip", "insert", "abort"]
    args: dict[str, Any] | None = Field(default=None, description="For retry: new arguments; None keeps the old ones.")
    steps: list[Step] = Field(
        default_factory=list, description="For insert: steps to run before the failed step is retried."
    )
    reason: str = Field(default="", description="Reason for the decision.")
    notes: list[str] = Field(default_factory=list, description="What was removed from the answer, and why.")


def as_json(answer: Value) -> dict[str, Any]:
    """The answer as JSON data without unset fields: for those, a revised plan keeps what people chose."""
    return answer.model_dump(mode="json", exclude_unset=True)


def parse_plan_answer(text: str, tools: Tools | None = None, limit: int | None = None) -> PlanAnswer | AnswerProblem:
    """Parse a plan of at most `limit` steps, without validating it. `tools` allows arguments written as JSON text."""
    data = json_object(text, bare_list="steps")
    if isinstance(data, AnswerProblem):
        return data
    if limit is not None and _number(data) > limit:
        return AnswerProblem.of([f"steps: {_number(data)} steps are too many; use at most {limit}, do more per step"])
    notes: list[str] = []
    plan = read_plan(own_fields(data, tools or {}, notes))
    if not isinstance(plan, Plan):
        return AnswerProblem.of([item.text for item in plan])
    return _too_many(plan, limit, "do more per step") or PlanAnswer(plan=plan, notes=notes)


def parse_recovery(text: str, spec: ToolSpec | None = None, tools: Tools | None = None) -> Recovery | AnswerProblem:
    """Parse a recovery. `spec`: the failed step's tool, whose schema applies to new arguments."""
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    data = {name: value for name, value in data.items() if value is not None}
    notes: list[str] = []
    steps, action = data.get("steps") or [], data.get("action")
    if (action == "insert") != bool(steps):
        return AnswerProblem.of(['steps: required with the action "insert", not allowed with any other'])
    if _number(data) > MAX_INSERTED:
        return AnswerProblem.of([f"steps: {_number(data)} steps are too many; insert at most {MAX_INSERTED}"])
    if "args" in data and action != "retry":
        return AnswerProblem.of(['args: allowed only with the action "retry"'])
    if steps:
        plan = read_plan(own_fields({"steps": steps}, tools or {}, notes))
        if not isinstance(plan, Plan):
            return AnswerProblem.of([item.text for item in plan])
        if problem := _too_many(plan, MAX_INSERTED, "insert less"):
            return problem
        steps = plan.steps
    args = data.get("args")
    if isinstance(args, str | dict) and spec is not None:
        args = loosened(args, spec.args_schema)
    return valid(Recovery, {"action": action, "args": args, "steps": steps, "reason": data.get("reason", "")}, notes)


def native_answer(content: str | None, calls: Sequence[tuple[str, str]]) -> str:
    """Merge native tool calls (name, arguments as JSON) of an endpoint into an answer's `tool_calls`, as JSON text."""
    data = json_object(content or "")
    fields = {"reasoning": content or ""} if isinstance(data, AnswerProblem) else data
    own = fields.get("tool_calls")
    added = [{"tool": name, "args": arguments} for name, arguments in calls]
    return json.dumps(fields | {"tool_calls": [*(own if isinstance(own, list) else []), *added]}, ensure_ascii=False)


def _too_many(plan: Plan, limit: int | None, instead: str) -> AnswerProblem | None:
    """The problem of a plan with too many steps, those inside blocks included."""
    count = sum(1 for _ in walk(plan))
    if limit is None or count <= limit:
        return None
    return AnswerProblem.of(
        [f"steps: {count} steps, those in blocks included, are too many; use at most {limit}, {instead}"]
    )


def _number(data: Mapping[str, Any]) -> int:
    """Number of steps; checked before parsing, since parsing thousands would take too long."""
    steps = data.get("steps")
    return len(steps) if isinstance(steps, list) else 0


Read = TypeVar("Read", bound=Value)


def valid(kind: type[Read], data: Mapping[str, Any], notes: list[str] | None = None) -> Read | AnswerProblem:
    """The data as a value, or what is wrong with each field."""
    try:
        return kind.model_validate({**data, **({"notes": notes} if notes else {})})
    except ValidationError as error:
        details = error.errors(include_url=False)
        return AnswerProblem.of(
            [f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}" for item in details]
        )

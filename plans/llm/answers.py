"""Parses a model's text into a typed answer, or into an AnswerProblem that the model can correct.

The activity `ask_llm` calls `parsed`; the workflow reads its result with `typed`.

A valid answer is one JSON object; a code fence and prose around it are ignored. An empty text, prose only, two objects,
a truncated object, unknown tools and bad arguments yield an `AnswerProblem` (LLM_BAD_ANSWER): it says what is wrong
and what to do, and is sent back to the model. Fields that only a person or the worker may set (waived approvals,
workspace, limits) are removed from an answer and reported in its `notes`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from plansurvive.plans.agents.answers import AgentAnswer, SimpleAnswer, ToolUse
from plansurvive.plans.agents.tasks import MAX_TASKS, TaskList
from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.parsing import MAX_ARGS_BYTES, read_plan
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.llm.chosen_tools import Offered
from plansurvive.plans.llm.json_extraction import AnswerProblem, json_object
from plansurvive.plans.llm.own_fields import own_args, own_fields
from plansurvive.plans.llm.schemas import (
    Schema,
    complex_schema,
    decomposition_schema,
    loosened,
    plan_schema,
    recovery_schema,
    simple_schema,
)
from plansurvive.plans.model import Plan, Step, ToolSpec, Value

Tools = Mapping[str, ToolSpec]
MAX_STEPS = 200
"""Maximum number of steps in a plan written by an LLM: more than a person would review."""
MAX_INSERTED = 20
"""Maximum number of steps that a recovery may insert."""
Kind = Literal["simple", "complex", "tasks", "plan", "recovery"]


class Expected(Value):
    """The expected kind of answer, and the tools to validate it against. Part of the request."""

    kind: Kind
    tools: list[ToolSpec] = Field(default_factory=list, description="Tools that the answer may use.")
    failed: str = Field(default="", description="For a recovery: name of the failed step's tool.")
    about: str = Field(default="", description="The request, by which tools of servers are chosen for the prompt.")

    @property
    def specs(self) -> dict[str, ToolSpec]:
        """The tools by name."""
        return {spec.name: spec for spec in self.tools}


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


Parsed = SimpleAnswer | AgentAnswer | TaskList | PlanAnswer | Recovery


def parsed(text: str, expected: Expected) -> Parsed | AnswerProblem:
    """Parse an answer of the expected kind."""
    specs = expected.specs
    match expected.kind:
        case "simple":
            return parse_simple(text, specs)
        case "complex":
            return parse_complex(text, specs)
        case "tasks":
            return parse_tasks(text)
        case "plan":
            return parse_plan_answer(text, specs, MAX_STEPS)
        case "recovery":
            return parse_recovery(text, specs.get(expected.failed), specs)


def typed(data: Mapping[str, Any], kind: Kind) -> Parsed:
    """Inverse of `as_json`: fields that were not set stay unset. Raises pydantic's ValidationError."""
    kinds: dict[Kind, type[Parsed]] = {
        "simple": SimpleAnswer, "complex": AgentAnswer, "tasks": TaskList, "plan": PlanAnswer, "recovery": Recovery,
    }  # fmt: skip
    return kinds[kind].model_validate(data)


def as_json(answer: Parsed) -> dict[str, Any]:
    """The answer as JSON data without unset fields: for those, a revised plan keeps what people chose."""
    return answer.model_dump(mode="json", exclude_unset=True)


def schema_of(expected: Expected) -> Schema:
    """The JSON Schema of an expected answer."""
    offered = Offered.of(expected.tools, expected.about)
    match expected.kind:
        case "simple":
            return simple_schema(offered)
        case "complex":
            return complex_schema(offered)
        case "tasks":
            return decomposition_schema()
        case "plan":
            return plan_schema(offered)
        case "recovery":
            return recovery_schema(offered, expected.specs.get(expected.failed))


def parse_simple(text: str, tools: Tools) -> SimpleAnswer | AnswerProblem:
    """Parse an answer in simple mode."""
    return _agent(text, tools, SimpleAnswer)


def parse_complex(text: str, tools: Tools) -> AgentAnswer | AnswerProblem:
    """Parse an answer in complex mode."""
    return _agent(text, tools, AgentAnswer)


def parse_tasks(text: str) -> TaskList | AnswerProblem:
    """Parse a task list."""
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    tasks = data.get("tasks")
    objectives = [" ".join(task.split()) for task in tasks if isinstance(task, str)] if isinstance(tasks, list) else []
    if not isinstance(tasks, list) or len(objectives) != len(tasks) or not all(objectives):
        return _bad(['tasks: must be a list of strings, one objective each: {"tasks": ["...", "..."]}'])
    if not 1 <= len(objectives) <= MAX_TASKS:
        return _bad([f"tasks: must have 1 to {MAX_TASKS} entries, not {len(objectives)}; merge or split tasks"])
    if any(len(objective) > 2_000 for objective in objectives):
        return _bad(["tasks: an objective is longer than 2000 characters; use one sentence"])
    return TaskList.of(objectives)


def parse_plan_answer(text: str, tools: Tools | None = None, limit: int | None = None) -> PlanAnswer | AnswerProblem:
    """Parse a plan of at most `limit` steps, without validating it. `tools` allows arguments written as JSON text."""
    data = json_object(text, bare_list="steps")
    if isinstance(data, AnswerProblem):
        return data
    if limit is not None and _number(data) > limit:
        return _bad([f"steps: {_number(data)} steps are too many; use at most {limit}, do more per step"])
    notes: list[str] = []
    plan = read_plan(own_fields(data, tools or {}, notes))
    if not isinstance(plan, Plan):
        return _bad([item.text for item in plan])
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
        return _bad(['steps: required with the action "insert", not allowed with any other'])
    if _number(data) > MAX_INSERTED:
        return _bad([f"steps: {_number(data)} steps are too many; insert at most {MAX_INSERTED}"])
    if "args" in data and action != "retry":
        return _bad(['args: allowed only with the action "retry"'])
    if steps:
        plan = read_plan(own_fields({"steps": steps}, tools or {}, notes))
        if not isinstance(plan, Plan):
            return _bad([item.text for item in plan])
        if problem := _too_many(plan, MAX_INSERTED, "insert less"):
            return problem
        steps = plan.steps
    args = data.get("args")
    if isinstance(args, str | dict) and spec is not None:
        args = loosened(args, spec.args_schema)
    return _valid(Recovery, {"action": action, "args": args, "steps": steps, "reason": data.get("reason", "")}, notes)


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
    return _bad([f"steps: {count} steps, those in blocks included, are too many; use at most {limit}, {instead}"])


def _number(data: Mapping[str, Any]) -> int:
    """Number of steps; checked before parsing, since parsing thousands would take too long."""
    steps = data.get("steps")
    return len(steps) if isinstance(steps, list) else 0


Answer = TypeVar("Answer", AgentAnswer, SimpleAnswer)
Read = TypeVar("Read", bound=Value)


def _agent(text: str, tools: Tools, kind: type[Answer]) -> Answer | AnswerProblem:
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    known = [name for field, info in kind.model_fields.items() for name in (field, info.alias or field)]
    hints = Hints()
    misspelt = [(name, near) for name in data if name not in known and (near := hints.near(name, known))]
    if misspelt:
        return _bad([f"there is no field '{name}'; did you mean '{near}'?" for name, near in misspelt])
    answer = _valid(kind, {name: value for name, value in data.items() if name in known})
    if isinstance(answer, AnswerProblem):
        return answer
    calls = [call.model_copy(update={"args": _own_args(call, tools)}) for call in answer.tool_calls]
    found = [(n, text) for n, call in enumerate(calls) for text in _call_problems(call, tools, hints)]
    problems = [f"tool_calls.{n}: {text}" for n, text in found]
    return _bad(problems) if problems else answer.model_copy(update={"tool_calls": calls})


def _valid(kind: type[Read], data: Mapping[str, Any], notes: list[str] | None = None) -> Read | AnswerProblem:
    try:
        return kind.model_validate({**data, **({"notes": notes} if notes else {})})
    except ValidationError as error:
        details = error.errors(include_url=False)
        return _bad(
            [f"{'.'.join(map(str, item['loc']))}: {item['msg'].removeprefix('Value error, ')}" for item in details]
        )


def _own_args(call: ToolUse, tools: Tools) -> dict[str, Any]:
    args = loosened(call.args, tools[call.tool].args_schema) if call.tool in tools else call.args
    return own_args(call.tool, args if isinstance(args, dict) else call.args, tools, [])


def _call_problems(call: ToolUse, tools: Tools, hints: Hints) -> list[str]:
    spec = tools.get(call.tool)
    if spec is None:
        near = hints.near(call.tool.strip().lower(), list(tools))
        return [
            f"Unknown tool: {call.tool[:80]}; " + (f"did you mean '{near}'?" if near else "use a tool from the list")
        ]
    if len(json.dumps(call.args)) > MAX_ARGS_BYTES:
        return [f"the arguments of {call.tool} are larger than {MAX_ARGS_BYTES} bytes; split them over several calls"]
    problems = argument_problems(spec, call.args, (), hints)
    return [f"Invalid args for {call.tool}: {field}: {text}" for field, text in problems]


def _bad(problems: Sequence[str]) -> AnswerProblem:
    return AnswerProblem.of(problems)

"""Parses a model's text into the value that was expected, or into a problem the model can act on.

`parsed` is called by the activity that asked; `typed` reads its result in the workflow.

A good answer is one JSON object; one code fence and prose around it are overlooked. Nothing, prose only, two objects, a
truncated one, unknown tools and bad arguments are an `AnswerProblem` (LLM_BAD_ANSWER) that says what is wrong and what
to do, to be sent back. What only a person or the worker may set (approvals waived, workspace, limits) is taken out
of an answer and noted, never obeyed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from plans.agents.answers import AgentAnswer, SimpleAnswer, ToolUse
from plans.agents.tasks import MAX_TASKS, TaskList
from plans.definition.arguments import argument_problems
from plans.definition.parsing import MAX_ARGS_BYTES, read_plan
from plans.llm.json_extraction import AnswerProblem, json_object
from plans.llm.schemas import (
    Schema,
    complex_schema,
    decomposition_schema,
    loosened,
    plan_schema,
    recovery_schema,
    simple_schema,
)
from plans.model import Plan, Step, ToolSpec, Value
from plans.step_fields import Llm, aliases, names

Tools = Mapping[str, ToolSpec]
MAX_STEPS = 200
"""Steps of a plan that an LLM writes: more than anyone reviews."""
MAX_INSERTED = 20
"""Steps that a recovery may insert."""
Kind = Literal["simple", "complex", "tasks", "plan", "recovery"]


class Expected(Value):
    """What an answer must be, and the tools it is judged by. Travels with the request."""

    kind: Kind
    tools: list[ToolSpec] = Field(default_factory=list, description="Those the answer may name.")
    failed: str = Field(default="", description="Of a recovery: the failed step's tool.")

    @property
    def specs(self) -> dict[str, ToolSpec]:
        """The tools by name."""
        return {spec.name: spec for spec in self.tools}


class PlanAnswer(Value):
    """A plan as a model wrote it; its shape is right, what it means is still to be validated."""

    plan: Plan
    notes: list[str] = Field(default_factory=list, description="What was left out of the answer, and why.")


class Recovery(Value):
    """What a model wants done about a failed step."""

    action: Literal["retry", "skip", "insert", "abort"]
    args: dict[str, Any] | None = Field(default=None, description="With retry: arguments instead of the step's own.")
    steps: list[Step] = Field(default_factory=list, description="With insert: to be run before the step's next try.")
    reason: str = Field(default="", description="Why.")
    notes: list[str] = Field(default_factory=list, description="What was left out of the answer, and why.")


Parsed = SimpleAnswer | AgentAnswer | TaskList | PlanAnswer | Recovery


def parsed(text: str, expected: Expected) -> Parsed | AnswerProblem:
    """The answer as a value of the kind expected."""
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
    """The value that `as_json` was made from, fields that were not set included. Raises ValidationError."""
    kinds: dict[Kind, type[Parsed]] = {
        "simple": SimpleAnswer, "complex": AgentAnswer, "tasks": TaskList, "plan": PlanAnswer, "recovery": Recovery,
    }  # fmt: skip
    return kinds[kind].model_validate(data)


def as_json(answer: Parsed) -> dict[str, Any]:
    """The answer as JSON data; a field that was not set stays so, since a revised plan keeps people's choice there."""
    return answer.model_dump(mode="json", exclude_unset=True)


def schema_of(expected: Expected) -> Schema:
    """The JSON Schema an answer of the kind is asked for in."""
    match expected.kind:
        case "simple":
            return simple_schema(expected.tools)
        case "complex":
            return complex_schema(expected.tools)
        case "tasks":
            return decomposition_schema()
        case "plan":
            return plan_schema(expected.tools)
        case "recovery":
            return recovery_schema(expected.tools, expected.specs.get(expected.failed))


def parse_simple(text: str, tools: Tools) -> SimpleAnswer | AnswerProblem:
    """An answer in simple mode."""
    return _agent(text, tools, SimpleAnswer)


def parse_complex(text: str, tools: Tools) -> AgentAnswer | AnswerProblem:
    """An answer in complex mode."""
    return _agent(text, tools, AgentAnswer)


def parse_tasks(text: str) -> TaskList | AnswerProblem:
    """A task list."""
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    tasks = data.get("tasks")
    objectives = [" ".join(task.split()) for task in tasks if isinstance(task, str)] if isinstance(tasks, list) else []
    if not isinstance(tasks, list) or len(objectives) != len(tasks) or not all(objectives):
        return _bad(['tasks: must be a list of texts, one objective each: {"tasks": ["...", "..."]}'])
    if not 1 <= len(objectives) <= MAX_TASKS:
        return _bad([f"tasks: 1 to {MAX_TASKS} tasks are allowed, there are {len(objectives)}; join or split some"])
    if any(len(objective) > 2_000 for objective in objectives):
        return _bad(["tasks: an objective may have 2000 characters; say it in one sentence"])
    return TaskList.of(objectives)


def parse_plan_answer(text: str, tools: Tools | None = None, limit: int | None = None) -> PlanAnswer | AnswerProblem:
    """A plan of `limit` steps at most, judged by its shape only. With `tools`, arguments as JSON text are decoded."""
    data = json_object(text, bare_list="steps")
    if isinstance(data, AnswerProblem):
        return data
    if limit is not None and _number(data) > limit:
        return _bad([f"steps: {_number(data)} are too many; {limit} are allowed, do more in one step"])
    notes: list[str] = []
    plan = read_plan(_own_fields(data, tools or {}, notes))
    return PlanAnswer(plan=plan, notes=notes) if isinstance(plan, Plan) else _bad([item.text for item in plan])


def parse_recovery(text: str, spec: ToolSpec | None = None, tools: Tools | None = None) -> Recovery | AnswerProblem:
    """What to do about a failed step. `spec` is the failed step's tool: new arguments are read as it wants them."""
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    data = {name: value for name, value in data.items() if value is not None}
    notes: list[str] = []
    steps, action = data.get("steps") or [], data.get("action")
    if (action == "insert") != bool(steps):
        return _bad(['steps: give steps with the action "insert", and with no other'])
    if _number(data) > MAX_INSERTED:
        return _bad([f"steps: {_number(data)} are too many; insert {MAX_INSERTED} at most"])
    if "args" in data and action != "retry":
        return _bad(['args: give args with the action "retry", and with no other'])
    if steps:
        plan = read_plan(_own_fields({"steps": steps}, tools or {}, notes))
        if not isinstance(plan, Plan):
            return _bad([item.text for item in plan])
        steps = plan.steps
    args = data.get("args")
    if isinstance(args, str | dict) and spec is not None:
        args = loosened(args, spec.args_schema)
    return _valid(Recovery, {"action": action, "args": args, "steps": steps, "reason": data.get("reason", "")}, notes)


def native_answer(content: str | None, calls: Sequence[tuple[str, str]]) -> str:
    """The answer in the contract's form, when an endpoint gave tool calls (name, JSON arguments) of its own."""
    data = json_object(content or "")
    fields = {"reasoning": content or ""} if isinstance(data, AnswerProblem) else data
    own = fields.get("tool_calls")
    added = [{"tool": name, "args": arguments} for name, arguments in calls]
    return json.dumps(fields | {"tool_calls": [*(own if isinstance(own, list) else []), *added]}, ensure_ascii=False)


def _number(data: Mapping[str, Any]) -> int:
    """How many steps an answer has: reading thousands of them takes longer than a workflow may think."""
    steps = data.get("steps")
    return len(steps) if isinstance(steps, list) else 0


Answer = TypeVar("Answer", AgentAnswer, SimpleAnswer)
Read = TypeVar("Read", bound=Value)


def _agent(text: str, tools: Tools, kind: type[Answer]) -> Answer | AnswerProblem:
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    known = [name for field, info in kind.model_fields.items() for name in (field, info.alias or field)]
    misspelt = [(name, near[0]) for name in data if name not in known and (near := get_close_matches(name, known, 1))]
    if misspelt:
        return _bad([f"there is no field '{name}'; did you mean '{near}'?" for name, near in misspelt])
    answer = _valid(kind, {name: value for name, value in data.items() if name in known})
    if isinstance(answer, AnswerProblem):
        return answer
    calls = [call.model_copy(update={"args": _own_args(call, tools)}) for call in answer.tool_calls]
    problems = [f"tool_calls.{n}: {text}" for n, call in enumerate(calls) for text in _call_problems(call, tools)]
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
    return args if isinstance(args, dict) else call.args


def _call_problems(call: ToolUse, tools: Tools) -> list[str]:
    spec = tools.get(call.tool)
    if spec is None:
        near = get_close_matches(call.tool.strip().lower(), list(tools), 1)
        return [f"Unknown tool: {call.tool[:80]}; " + (f"did you mean '{near[0]}'?" if near else "use one of the list")]
    if len(json.dumps(call.args)) > MAX_ARGS_BYTES:
        return [f"the arguments of {call.tool} are larger than {MAX_ARGS_BYTES} bytes; do it in several calls"]
    return [f"Invalid args for {call.tool}: {field}: {text}" for field, text in argument_problems(spec, call.args)]


_NOT_OF_A_PLAN = ("id", "taskId", "task_id", "version", "createdAt", "created_at", "workspace", "inputs", "defaults")
_NOT_OF_A_STEP = ("status", "result", *dict.fromkeys(aliases(Step, Llm.NEVER) + names(Step, Llm.NEVER)))


def _own_fields(data: Mapping[str, Any], tools: Tools, notes: list[str]) -> dict[str, Any]:
    """A plan's data without nulls and without what is not the model's to set."""
    own = _without(data, (*_NOT_OF_A_PLAN, "maxParallel", "max_parallel"), "the plan", notes)
    steps = own.get("steps")
    if isinstance(steps, list):
        own["steps"] = [_own_step(step, tools, notes) if isinstance(step, Mapping) else step for step in steps]
    return own


def _own_step(step: Mapping[str, Any], tools: Tools, notes: list[str]) -> dict[str, Any]:
    place = f"step '{step.get('id')}'"
    own = _without(step, _NOT_OF_A_STEP, place, notes)
    for name in ("requiresApproval", "requires_approval"):
        if own.get(name) is False:
            del own[name]
            notes.append(f"{place}: {name} false was left out; only a person waives an approval")
    spec = tools.get(own["tool"]) if isinstance(own.get("tool"), str) else None
    if spec is not None and "args" in own:
        own["args"] = loosened(own["args"], spec.args_schema)
    return own


def _without(data: Mapping[str, Any], names: Sequence[str], place: str, notes: list[str]) -> dict[str, Any]:
    found = [name for name in names if data.get(name) is not None]
    notes.extend(f"{place}: {name} was left out; it is not the model's to set" for name in found)
    return {name: value for name, value in data.items() if value is not None and name not in names}


def _bad(problems: Sequence[str]) -> AnswerProblem:
    return AnswerProblem.of(problems)

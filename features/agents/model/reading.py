"""Reads the text of an agent's answer: its calls are checked against the tools that it was shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer, ToolUse
from plansurvive.features.agents.model.question import Asked
from plansurvive.features.agents.model.schemas import complex_schema, decomposition_schema, simple_schema
from plansurvive.features.agents.model.tasks import MAX_TASKS, TaskList
from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.definition.foreign_names import CALLS
from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.definition.parsing import MAX_ARGS_BYTES
from plansurvive.plans.llm.answers import AnswerKind, Tools, valid
from plansurvive.plans.llm.json_extraction import AnswerProblem, json_object
from plansurvive.plans.llm.own_fields import own_args
from plansurvive.plans.llm.schemas import loosened

Answer = TypeVar("Answer", AgentAnswer, SimpleAnswer)


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
        return AnswerProblem.of(['tasks: must be a list of strings, one objective each: {"tasks": ["...", "..."]}'])
    if not 1 <= len(objectives) <= MAX_TASKS:
        return AnswerProblem.of(
            [f"tasks: must have 1 to {MAX_TASKS} entries, not {len(objectives)}; merge or split tasks"]
        )
    if any(len(objective) > 2_000 for objective in objectives):
        return AnswerProblem.of(["tasks: an objective is longer than 2000 characters; use one sentence"])
    return TaskList.of(objectives)


def _agent(text: str, tools: Tools, kind: type[Answer]) -> Answer | AnswerProblem:
    data = json_object(text)
    if isinstance(data, AnswerProblem):
        return data
    known = [name for field, info in kind.model_fields.items() for name in (field, info.alias or field)]
    hints = Hints()
    misspelt = [(name, hint) for name in data if name not in known and (hint := hints.question(name, known))]
    if misspelt:
        return AnswerProblem.of([f"there is no field '{name}'{hint}" for name, hint in misspelt])
    answer = valid(kind, {name: value for name, value in data.items() if name in known})
    if isinstance(answer, AnswerProblem):
        return answer
    calls = [call.model_copy(update={"args": _own_args(call, tools)}) for call in answer.tool_calls]
    found = [(n, text) for n, call in enumerate(calls) for text in _call_problems(call, tools, hints)]
    problems = [f"tool_calls.{n}: {text}" for n, text in found]
    return AnswerProblem.of(problems) if problems else answer.model_copy(update={"tool_calls": calls})


def _own_args(call: ToolUse, tools: Tools) -> dict[str, Any]:
    args = loosened(call.args, tools[call.tool].args_schema) if call.tool in tools else call.args
    return own_args(call.tool, args if isinstance(args, dict) else call.args, tools, [])


def _call_problems(call: ToolUse, tools: Tools, hints: Hints) -> list[str]:
    spec = tools.get(call.tool)
    if spec is None:
        hint = hints.question(call.tool.strip().lower(), tools, CALLS) or "; use a tool from the list"
        return [f"Unknown tool: {call.tool[:80]}{hint}"]
    if len(json.dumps(call.args)) > MAX_ARGS_BYTES:
        return [f"the arguments of {call.tool} are larger than {MAX_ARGS_BYTES} bytes; split them over several calls"]
    problems = argument_problems(spec, call.args, (), hints)
    return [f"Invalid args for {call.tool}: {field}: {text}" for field, text in problems]


VALUES: Mapping[Asked, type[SimpleAnswer | TaskList | AgentAnswer]] = {
    "simple": SimpleAnswer, "tasks": TaskList, "complex": AgentAnswer,
}  # fmt: skip
KINDS: Mapping[str, AnswerKind] = {
    kind.name: kind
    for kind in (
        AnswerKind("simple", lambda tools, _: simple_schema(tools), lambda text, of: parse_simple(text, of.specs)),
        AnswerKind("tasks", lambda *_: decomposition_schema(), lambda text, _: parse_tasks(text)),
        AnswerKind("complex", lambda tools, _: complex_schema(tools), lambda text, of: parse_complex(text, of.specs)),
    )
}
"""What an agent's model is asked for, and a request that is split into tasks."""

"""Prompts of an agent's model: the system prompt of a run, and one user prompt per LLM request (seed 002).

The user prompt has the sections and marks of seed 002, in that order; empty sections are omitted. The system prompt is
the same for all requests of a mode (so that it can be cached): rules, tools, fields of the answer, agents.md texts. The
task list shown is the orchestrator's; every prompt states the current task and how many remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plans.agents.tasks import PLAN_ACTIONS, Task, TaskList, TaskStatus
from plans.llm.prompt_parts import (
    DATA_RULE,
    READ_RESULT,
    Guide,
    ToolOutcome,
    clean,
    guidance,
    joined,
    one_line,
    outcomes_text,
    section,
    tools_text,
)
from plans.llm.schemas import COMPLEX_FIELDS, SIMPLE_FIELDS, instruction
from plans.model import ToolSpec

PLAN_ACTIONS_TOOL = ToolSpec(
    name=PLAN_ACTIONS,
    description="Choose this for a request with several objectives: it is split into a task list for you to work on.",
    args_schema={
        "type": "object",
        "properties": {"reason": {"type": "string", "description": "Why the request needs a task list."}},
        "required": ["reason"],
        "additionalProperties": False,
    },
    effect="pure",
)
READ_RESULT_TOOL = ToolSpec(
    name=READ_RESULT,
    description="Read more of the result of an earlier tool call that was cut or left out.",
    args_schema={
        "type": "object",
        "properties": {
            "call": {"type": "integer", "minimum": 1, "description": "Number of the call."},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Characters to skip."},
        },
        "required": ["call"],
        "additionalProperties": False,
    },
    effect="pure",
)


def simple_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = ()) -> str:
    """The system prompt of simple mode; `tools` includes PLAN_ACTIONS_TOOL if complex mode may be chosen."""
    return _system(_SIMPLE_ROLE, tools, SIMPLE_FIELDS, guides)


def complex_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = ()) -> str:
    """The system prompt of complex mode."""
    return _system(_COMPLEX_ROLE, tools, COMPLEX_FIELDS, guides)


def decomposition_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = ()) -> str:
    """The system prompt of the first request in complex mode, which splits the user's request into tasks."""
    answer = section("ANSWER FORMAT", '{"tasks": ["objective", "..."]}')
    return joined([section("RULES", _DECOMPOSE_ROLE), section("TOOLS", tools_text(tools)), answer, guidance(guides)])


def simple_prompt(request: str, outcomes: Sequence[ToolOutcome] = (), notice: str = "") -> str:
    """The user prompt in simple mode."""
    ask = "Continue with tool_calls, or provide your answer." if outcomes else "Call the tools you need, or answer."
    results = section("TOOL RESULTS", outcomes_text(outcomes)) if outcomes else ""
    return joined([_request(request), results, _notice(notice), section("INSTRUCTIONS", ask)])


def decomposition_prompt(request: str) -> str:
    """The user prompt that requests the task list."""
    return joined(
        [_request(request), section("INSTRUCTIONS", "Split the request into tasks, in the order to do them.")]
    )


def complex_prompt(request: str, tasks: TaskList, outcomes: Sequence[ToolOutcome] = (), notice: str = "") -> str:
    """The user prompt in complex mode, for the current state of the task list."""
    return joined(
        [
            _request(request),
            section("TASK LIST", "\n".join(_row(number, task) for number, task in enumerate(tasks.tasks, 1))),
            section("CURRENT TASK", _current(tasks)),
            _completed(tasks),
            section("TOOL RESULTS", outcomes_text(outcomes)) if outcomes else "",
            _notice(notice),
            section("INSTRUCTIONS", _instructions(tasks)),
        ]
    )


_SIMPLE_ROLE = f"""\
You carry out a user's request with tools. Handle a request with one objective directly: call tools, look at their
results, then answer. For a request with several objectives, first call {PLAN_ACTIONS} on its own.
Answer with one JSON object in the format below and nothing else. Tool calls in one answer may run at the same time.
{DATA_RULE}"""
_COMPLEX_ROLE = f"""\
You carry out a user's request with tools, one task of the TASK LIST at a time. The list is maintained for you: work on
the CURRENT TASK, report when it is complete, and continue until every task is complete. Never stop early.
Answer with one JSON object in the format below and nothing else. Tool calls in one answer may run at the same time.
{DATA_RULE}"""
_DECOMPOSE_ROLE = f"""\
You split a user's request into a task list. One task is one objective; it may take several tool calls. Leave nothing
out of the request, and add nothing to it. A task is one sentence that can be understood without the others.
Answer with one JSON object in the format below and nothing else.
{DATA_RULE}"""


def _system(
    role: str, tools: Iterable[ToolSpec], fields: Mapping[str, tuple[str, str]], guides: Sequence[Guide]
) -> str:
    rows = ["One JSON object with these fields; a field that is not needed is null or left out:"]
    rows += [f"- {name}: {instruction(fields, name)}" for name in fields]
    rows.append('A tool call is {"tool": "name", "args": {...}}.')
    return joined(
        [
            section("RULES", role),
            section("TOOLS", tools_text(tools)),
            section("ANSWER FORMAT", "\n".join(rows)),
            guidance(guides),
        ]
    )


def _request(request: str) -> str:
    return section("USER REQUEST", clean(request))


def _notice(notice: str) -> str:
    return section("NOTICE", clean(notice)) if notice else ""


def _row(number: int, task: Task) -> str:
    objective = one_line(task.objective)
    if task.status is TaskStatus.DONE:
        return f"{number}. [x] {objective} ✓"
    if task.status is TaskStatus.CURRENT:
        return f"{number}. [>] {objective}  ← CURRENT"
    return f"{number}. [ ] {objective}"


def _current(tasks: TaskList) -> str:
    if tasks.current is None or tasks.position is None:
        return f"None: all {len(tasks.tasks)} tasks are complete"
    return f"Task {tasks.position + 1}: {one_line(tasks.current.objective)}"


def _completed(tasks: TaskList) -> str:
    rows = [
        f'Task {number}: "{one_line(task.summary)}"'
        for number, task in enumerate(tasks.tasks, 1)
        if task.status is TaskStatus.DONE
    ]
    return section("COMPLETED TASKS", "\n".join(rows)) if rows else ""


def _instructions(tasks: TaskList) -> str:
    count = len(tasks.tasks)
    if tasks.remaining == 0:
        return f"ALL {count} tasks are complete (0 remaining).\n- Return final_answer: your answer to the USER REQUEST"
    if not tasks.has_begun:
        return (
            "Execute the CURRENT TASK by calling the appropriate tool(s).\n"
            "- While working on a task, return tool_calls with your reasoning\n"
            "- When the current task is done, return task_completed with a brief summary\n"
            f"- Only return final_answer when ALL {count} tasks are complete"
        )
    return (
        "Execute the CURRENT TASK.\n"
        "- Return tool_calls to continue working\n"
        "- Return task_completed when this task is done\n"
        f"- Only return final_answer when ALL {count} tasks are complete ({tasks.remaining} remaining)"
    )

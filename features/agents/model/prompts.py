"""Parts of an agent's prompts: the system prompt of a mode, the request, and the end of each prompt (seed 002).

The sections and marks are those of seed 002; empty sections are omitted. The system prompt is the same for all requests
of a mode: rules, tools, fields of the answer, agents.md texts. Only the end differs from request to request: task list,
current task, completed tasks, notice and instructions. The conversation stands between the two, so that a prompt
begins like the one before it. The task list shown is the orchestrator's; every prompt states the current task and how
many remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from plansurvive.features.agents.model.schemas import COMPLEX_FIELDS, SIMPLE_FIELDS
from plansurvive.features.agents.model.tasks import PLAN_ACTIONS, TaskList
from plansurvive.plans.llm.prompt_parts import (
    DATA_RULE,
    READ_RESULT,
    Guide,
    clean,
    guidance,
    joined,
    one_line,
    section,
    tools_text,
)
from plansurvive.plans.llm.schemas import instruction
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.views.models.agents import Task, TaskStatus

PLAN_ACTIONS_TOOL = ToolSpec(
    name=PLAN_ACTIONS,
    description="Choose this for a request with several objectives: it is split into a task list for you to work on.",
    args_schema={
        "type": "object",
        "properties": {"reason": {"type": "string", "description": "Why the request needs a task list."}},
        "required": [],
        "additionalProperties": False,
    },
    effect="pure",
)
READ_RESULT_TOOL = ToolSpec(
    name=READ_RESULT,
    description="Read the result of an earlier tool call, for example of one that was cut, shortened or left out.",
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


def simple_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = (), about: str = "") -> str:
    """The system prompt of simple mode; `tools` includes PLAN_ACTIONS_TOOL if complex mode may be chosen.

    `about`, here and below: the request, by which the tools of servers are chosen if there are too many.
    """
    return _system(_SIMPLE_ROLE, tools, SIMPLE_FIELDS, guides, about)


def complex_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = (), about: str = "") -> str:
    """The system prompt of complex mode."""
    return _system(_COMPLEX_ROLE, tools, COMPLEX_FIELDS, guides, about)


def decomposition_system(tools: Iterable[ToolSpec], guides: Sequence[Guide] = (), about: str = "") -> str:
    """The system prompt of the first request in complex mode, which splits the user's request into tasks."""
    answer = section("ANSWER FORMAT", '{"tasks": ["objective", "..."]}')
    listed = section("TOOLS", tools_text(tools, about))
    return joined([section("RULES", _ruled(_DECOMPOSE_ROLE)), listed, answer, guidance(guides)])


def request_section(request: str) -> str:
    """The user's request, with which the messages of every prompt begin."""
    return section("USER REQUEST", clean(request))


def simple_end(has_begun: bool, notice: str = "") -> str:
    """The end of a prompt in simple mode; `has_begun`: the model has answered before."""
    ask = "Continue with tool_calls, or provide your answer." if has_begun else "Call the tools you need, or answer."
    return joined([notice_section(notice), section("INSTRUCTIONS", ask)])


def decomposition_end() -> str:
    """The end of the prompt that requests the task list."""
    return section("INSTRUCTIONS", "Split the request into tasks, in the order to do them.")


def complex_end(tasks: TaskList, notice: str = "") -> str:
    """The end of a prompt in complex mode, for the current state of the task list."""
    return joined(
        [
            section("TASK LIST", "\n".join(_row(number, task) for number, task in enumerate(tasks.tasks, 1))),
            section("CURRENT TASK", _current(tasks)),
            _completed(tasks),
            notice_section(notice),
            section("INSTRUCTIONS", _instructions(tasks)),
        ]
    )


def notice_section(notice: str) -> str:
    """What the orchestrator tells the model; empty without a notice."""
    return section("NOTICE", clean(notice)) if notice else ""


_CUT_RULE = (
    "Your earlier answers are repeated to you with long texts cut, and old results shortened to one line; write"
    f" arguments in full all the same. {READ_RESULT} shows the result of any earlier call."
)
_SIMPLE_ROLE = f"""\
You carry out a user's request with tools. Handle a request with one objective directly: call tools, look at their
results, then answer. For a request with several objectives, first call {PLAN_ACTIONS} on its own.
Answer with one JSON object in the format below and nothing else. Tool calls in one answer may run at the same time.
{_CUT_RULE}"""
_COMPLEX_ROLE = f"""\
You carry out a user's request with tools, one task of the TASK LIST at a time. The list is maintained for you: work on
the CURRENT TASK, report when it is complete, and continue until every task is complete. Never stop early.
Answer with one JSON object in the format below and nothing else. Tool calls in one answer may run at the same time.
{_CUT_RULE}"""
_DECOMPOSE_ROLE = """\
You split a user's request into a task list. One task is one objective; it may take several tool calls. Leave nothing
out of the request, and add nothing to it. A task is one sentence that can be understood without the others.
Answer with one JSON object in the format below and nothing else."""
WORDS: Mapping[str, str] = MappingProxyType(
    {"agent.simple": _SIMPLE_ROLE, "agent.complex": _COMPLEX_ROLE, "agent.tasks": _DECOMPOSE_ROLE}
)
"""The rules of each mode by name, as a prompt set may replace them; DATA_RULE follows them in any case."""


def _system(
    role: str, tools: Iterable[ToolSpec], fields: Mapping[str, tuple[str, str]], guides: Sequence[Guide], about: str
) -> str:
    rows = ["One JSON object with these fields; a field that is not needed is null or left out:"]
    rows += [f"- {name}: {instruction(fields, name)}" for name in fields]
    rows.append('A tool call is {"tool": "name", "args": {...}}.')
    return joined(
        [
            section("RULES", _ruled(role)),
            section("TOOLS", tools_text(tools, about)),
            section("ANSWER FORMAT", "\n".join(rows)),
            guidance(guides),
        ]
    )


def _ruled(role: str) -> str:
    return f"{role}\n{DATA_RULE}"


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

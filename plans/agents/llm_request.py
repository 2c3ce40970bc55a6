"""Input and output types of the `ask_llm` activity.

It takes an `LlmRequest` and returns an `LlmAnswer` with the typed answer. An answer that cannot be used is still a
result: its `problem` and `problems` say what is wrong in words the model understands, and the caller sends it back for
correction. Both are read from recorded histories, so a field that is unknown, such as one dropped since, is ignored.

An agent asks by reference, since its prompt is long and most of it was sent before: a `Conversation` (request,
agents.md, tool results) is stored outside history, a question names it and brings only what is new, and the activity
composes the prompt.

A failure that another attempt cannot cure is an application error with one of the codes below.

    LLM_NO_KEY        no key is set for an endpoint that needs one   LLM_REFUSED      the model or a filter declined
    LLM_KEY           the endpoint does not accept the key           LLM_TRUNCATED    the answer was cut off
    LLM_MODEL         no model is named, or nobody knows it          LLM_BAD_ANSWER   not what the protocol promises
    LLM_REQUEST       the endpoint finds the request wrong           LLM_UNAVAILABLE  busy, down, slow: tried again
    LLM_QUOTA         the account has nothing left to spend          LLM_TOO_LONG     more than the model takes at once
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import ConfigDict, Field

from plans.activity_io import LargeValue, Note
from plans.agents.prompts import (
    PLAN_ACTIONS_TOOL,
    READ_RESULT_TOOL,
    complex_prompt,
    complex_system,
    decomposition_prompt,
    decomposition_system,
    simple_prompt,
    simple_system,
)
from plans.agents.tasks import TaskList
from plans.budget import Usage
from plans.llm.answers import Expected
from plans.llm.planning_prompts import correction_prompt
from plans.llm.prompt_parts import RESULT_CHARACTERS, RESULTS_CHARACTERS, Guide, Prompt, ToolOutcome
from plans.model import ToolSpec, Value

BAD_ANSWER = "LLM_BAD_ANSWER"
MAX_TEXT_BYTES = 1024 * 1024
"""Longest answer that is passed on."""

Mode = Literal["json_schema", "json_object", "text"]


Asked = Literal["simple", "tasks", "complex"]
"""What the model of an agent is to answer."""


class Outcome(Value):
    """What came of a tool call: its text, or where its value is kept."""

    tool: str
    ok: bool = True
    call: int | None = None
    text: str = Field(default="", description="The value as text, or the error.")
    large: LargeValue | None = Field(default=None, description="The value, when it is kept outside history.")
    offset: int = Field(default=0, ge=0, description="Characters to leave out, when the model reads on.")

    def shown(self, value: Any = None) -> ToolOutcome:
        """As a prompt shows it; `value` is what is kept outside."""
        whole = (as_text(value) if self.large else self.text)[self.offset :]
        cut = whole[:RESULT_CHARACTERS]
        length = len(whole) if len(whole) > len(cut) else None
        return ToolOutcome(tool=self.tool, ok=self.ok, text=cut, call=self.call, length=length)


class Conversation(Value):
    """What was said so far, as the next prompt needs it."""

    request: str = ""
    output_schema: dict[str, Any] | None = Field(default=None, description="JSON Schema of the final answer.")
    guides: list[Guide] = Field(default_factory=list)
    outcomes: list[ToolOutcome] = Field(default_factory=list)

    def plus(self, question: AgentQuestion, guides: Sequence[Guide], outcomes: Sequence[ToolOutcome]) -> Conversation:
        """With what is new; the texts of results that no prompt shows any more are dropped."""
        merged = sorted([*self.guides, *guides], key=lambda guide: (guide.path.count("/"), guide.path))
        return Conversation(
            request=question.request or self.request,
            output_schema=question.output_schema or self.output_schema,
            guides=merged,
            outcomes=_bounded([*self.outcomes, *outcomes]),
        )


class AgentQuestion(Value):
    """One question to an agent's model."""

    asked: Asked
    tools: list[str] = Field(description="Names of the tools it may call.")
    conversation: LargeValue | None = Field(default=None, description="What was said so far.")
    request: str = Field(default="", description="The user's request, the first time.")
    output_schema: dict[str, Any] | None = Field(default=None, description="Of the final answer, the first time.")
    guides: list[Note] = Field(default_factory=list, description="agents.md that are new.")
    outcomes: list[Outcome] = Field(default_factory=list, description="Tool results that are new.")
    tasks: TaskList | None = None
    notice: str = ""
    last: str = Field(default="", description="The last answer, when it could not be used.")
    problems: list[str] = Field(default_factory=list, description="What was wrong with it.")
    left: int = Field(default=0, description="Attempts left to mend it.")


class ChatMessage(Value):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class LlmRequest(Value):
    """One question to the LLM, expecting one JSON object."""

    model_config = ConfigDict(extra="ignore")

    purpose: str = Field(description="What it is for: plan, correction, recovery, agent, ...; for people.")
    messages: list[ChatMessage] = Field(default_factory=list, description="The conversation so far.")
    agent: AgentQuestion | None = Field(default=None, description="The messages are composed from this.")
    expected: Expected | None = Field(default=None, description="What the answer must be; of an agent, see `agent`.")
    schema_name: str = Field(default="answer", pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Names the schema.")
    json_schema: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of the object; made from what is expected, where that is said."
    )
    key: str = Field(default="", description="The same over all attempts of the call, different for every other call.")


class LlmAnswer(Value):
    """What the LLM said, and what it took."""

    model_config = ConfigDict(extra="ignore")

    text: str = Field(description="JSON text of the object; of an answer with a problem as it came; empty: see parsed.")
    problem: str = Field(default="", description="Why the answer cannot be used; empty when it can.")
    problems: list[str] = Field(default_factory=list, description="Each of several problems, place first.")
    parsed: dict[str, Any] | None = Field(
        default=None, description="The answer as JSON data of the kind expected; none: not parsed, or a problem."
    )
    form_problem: str | None = Field(
        default=None, description="What keeps an agent's final answer from the schema ordered; none: not judged."
    )
    usage: Usage = Field(default_factory=Usage, description="Of the attempt that was answered.")
    model: str = Field(description="The model as the endpoint calls it.")
    finish_reason: str = Field(default="stop", description="As the endpoint gives it.")
    mode: Mode = Field(description="How the endpoint was asked for JSON.")
    duration: float = Field(default=0.0, description="Milliseconds, of the attempt that was answered.")
    conversation: LargeValue | None = Field(default=None, description="Of an agent: what was said so far.")
    attempt: int = Field(default=1, description="Which attempt was answered, errors of the endpoint counted only.")


class SnapshotRequest(Value):
    """What the LLM is to be shown of a workspace."""

    workspace: str = Field(description="Absolute directory.")
    max_bytes: int = Field(default=24_000, ge=1_000, le=200_000, description="Longest text.")


class Snapshot(Value):
    """A workspace as a text for the LLM: its files by name, and the beginnings of small text files."""

    text: str
    files: int = Field(description="Files and directories named.")
    complete: bool = Field(description="Whether every file that is not ignored is named.")


def offered(names: Iterable[str], tools: Mapping[str, ToolSpec], asked: Asked) -> list[ToolSpec]:
    """The tools of a question: those allowed, and those of the orchestrator."""
    own = [READ_RESULT_TOOL, *([PLAN_ACTIONS_TOOL] if asked == "simple" else [])]
    return [*(tools[name] for name in names if name in tools), *own]


def prompt_of(question: AgentQuestion, said: Conversation, tools: Mapping[str, ToolSpec]) -> Prompt:
    """The whole prompt."""
    specs = offered(question.tools, tools, question.asked)
    if question.asked == "tasks":
        first = Prompt(system=decomposition_system(specs, said.guides), user=decomposition_prompt(said.request))
    elif question.asked == "simple" or question.tasks is None:
        user = simple_prompt(said.request, said.outcomes, question.notice)
        first = Prompt(system=simple_system(specs, said.guides), user=user)
    else:
        user = complex_prompt(said.request, question.tasks, said.outcomes, question.notice)
        first = Prompt(system=complex_system(specs, said.guides), user=user)
    return correction_prompt(first, question.last, question.problems, question.left) if question.problems else first


def expected_of(question: AgentQuestion, tools: Mapping[str, ToolSpec]) -> Expected:
    """What the answer must be, `tools` being the worker's."""
    return Expected(kind=question.asked, tools=offered(question.tools, tools, question.asked))


def as_text(value: Any) -> str:
    """A tool's value as a model reads it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _bounded(outcomes: Sequence[ToolOutcome]) -> list[ToolOutcome]:
    kept, size = list(outcomes), 0
    for index in range(len(kept) - 1, -1, -1):
        size += len(kept[index].text)
        if size > 2 * RESULTS_CHARACTERS and kept[index].text:
            kept[index] = kept[index].model_copy(update={"text": "", "length": 1})
    return kept

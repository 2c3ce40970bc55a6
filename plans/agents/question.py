"""What an agent's model is asked, by reference: the activity that asks composes the prompt from this.

A prompt of an agent is long and most of it was sent before, so history never holds one. A `Conversation` (request,
agents.md, tool results) is kept outside history; a question names it and brings only what is new since.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

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
from plans.llm.answers import Expected
from plans.llm.planning_prompts import correction_prompt
from plans.llm.prompt_parts import RESULT_CHARACTERS, RESULTS_CHARACTERS, Guide, Prompt, ToolOutcome
from plans.model import ToolSpec, Value

Asked = Literal["simple", "tasks", "complex"]
"""What the model is to answer: DESIGN 2.7, agent."""


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

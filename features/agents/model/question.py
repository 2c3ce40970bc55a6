"""One request to an agent's model, what follows from its answer, and the messages it is composed of.

An agent's request is incremental, because its prompt is long and most of it was sent before: the `Conversation`
(request, agents.md, tool results) is stored outside history, an `AgentQuestion` references it and adds only what is
new, and the worker composes the prompt (`features.agents.in_requests`). Read from recorded histories.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer
from plansurvive.features.agents.model.conversation import Conversation, Messages
from plansurvive.features.agents.model.prompts import (
    PLAN_ACTIONS_TOOL,
    READ_RESULT_TOOL,
    complex_end,
    complex_system,
    decomposition_end,
    decomposition_system,
    simple_end,
    simple_system,
)
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.plans.activity_io import Logs, Note
from plansurvive.plans.large_value import LargeValue
from plansurvive.plans.llm.answers import Expected
from plansurvive.plans.llm.corrections import correction_section
from plansurvive.plans.llm.json_extraction import json_object
from plansurvive.plans.llm.prompt_parts import READ_RESULT, RESULT_CHARACTERS, ToolOutcome, joined
from plansurvive.plans.llm.shortened import ARGS_CHARACTERS, CHANGED_CHARACTERS, answer_line, args_line
from plansurvive.plans.model import ToolSpec, Value
from plansurvive.plans.model.parts import Part

TEXT_CHARACTERS = 16_000
"""Characters of a value that its outcome has; a model that reads on gets the rest."""
Asked = Literal["simple", "tasks", "complex"]
"""The kind of answer expected from an agent's model."""


CallEnd = Literal["done", "failed", "denied", "unanswered", "interrupted", "unknown"]
"""How a tool call ended. `unanswered`: no decision about it came in time. `failed`: with an error; also when it was not
made because a call that it waits for failed. `interrupted`: before it began, and the run that resumed its own could not
make it either. `unknown`: it was running when its run or its worker ended, so it may have happened, or a part."""


class Outcome(Value):
    """The result of a tool call: inline text, or a reference to the stored value. Every call has exactly one."""

    tool: str
    ok: bool = True
    state: CallEnd = Field(default="done", description="Default: by `ok`, as in histories that lack it.")
    call: int | None = None
    args: dict[str, Any] | None = Field(
        default=None, description="The arguments that ran, long ones truncated; the model's if none ran."
    )
    asked: dict[str, Any] | None = Field(
        default=None, description="The model's arguments, truncated alike, if a person replaced them."
    )
    by: str = Field(default="", description="The person who approved or denied it, if one did and gave a name.")
    again: str = Field(default="", description="Of a call that was made several times: what became of it before.")
    text: str = Field(default="", description="The value as text, or the error.")
    length: int | None = Field(default=None, description="Characters of the whole text, if `text` is truncated.")
    large: LargeValue | None = Field(default=None, description="Reference to a value stored outside history.")
    offset: int = Field(default=0, ge=0, description="Characters to skip, for `read_result`.")
    output: int = Field(default=0, description="Of a call without a value: bytes that its commands wrote.")
    logs: Logs | None = Field(default=None, description="For `read_result` of such a call: where all of it is stored.")

    @model_validator(mode="before")
    @classmethod
    def _has_state(cls, given: Any) -> Any:
        lacks = isinstance(given, dict) and given.get("ok") is False and "state" not in given
        return {**given, "state": "failed"} if lacks else given

    def shown(self, value: Any = None) -> ToolOutcome:
        """The result as shown in a prompt. `value`: the stored value that `large` refers to."""
        whole = (as_text(value) if self.large else self.text)[self.offset :]
        if self.logs is None and self.output > len(self.text.encode("utf-8", "replace")) and self.call is not None:
            whole += f"\n(for all of its output call {READ_RESULT} with {json.dumps({'call': self.call})})"
        cut = whole[:RESULT_CHARACTERS]
        read = self.args.get("call") if self.tool == READ_RESULT and self.args else None
        return ToolOutcome(
            tool=self.tool,
            ok=self.ok,
            text=cut,
            call=read if isinstance(read, int) else self.call,
            length=self.length or (len(whole) if len(whole) > len(cut) else None),
            offset=self.offset,
            args=args_line(self.args or {}, ARGS_CHARACTERS if self.asked is None else CHANGED_CHARACTERS),
            asked=args_line(self.asked or {}),
            by=self.by,
            state=self.state,
            again=self.again,
        )


class AgentQuestion(Part):
    """One request to an agent's model, as a part of the `LlmRequest`: what is new since the last one."""

    model_config = ConfigDict(frozen=True)
    feature: ClassVar[str] = "agents"

    asked: Asked = "simple"
    tools: list[str] = Field(default_factory=list, description="Names of the tools it may call.")
    conversation: LargeValue | None = Field(default=None, description="Reference to the stored Conversation.")
    request: str = Field(default="", description="The user's request; only in the first question.")
    output_schema: dict[str, Any] | None = Field(
        default=None, description="JSON Schema of the final answer; only in the first question."
    )
    forget_guides: bool = Field(
        default=False, description="Drop the conversation's agents.md: the session was cleared. They come in again."
    )
    guides: list[Note] = Field(default_factory=list, description="agents.md texts that are new.")
    outcomes: list[Outcome] = Field(default_factory=list, description="Tool results that are new.")
    tasks: TaskList | None = None
    notice: str = ""
    last: str = Field(default="", description="The last answer, if it was not usable.")
    problems: list[str] = Field(default_factory=list, description="Problems of the last answer.")
    left: int = Field(default=0, description="Attempts left to correct it.")


class Continuation(Part):
    """What comes back with the answer of an agent's model: how the conversation goes on, as a part of it."""

    model_config = ConfigDict(frozen=True)
    feature: ClassVar[str] = "agents"

    form_problem: str | None = Field(
        default=None, description="How a final answer violates its schema; None if not checked."
    )
    conversation: LargeValue | None = Field(default=None, description="Reference to the stored Conversation.")
    compacted: int = Field(default=0, description="Results compacted in its prompt this time.")


def offered(names: Iterable[str], tools: Mapping[str, ToolSpec], asked: Asked) -> list[ToolSpec]:
    """The tools offered to the model: the allowed ones and the orchestrator's own."""
    own = [READ_RESULT_TOOL, *([PLAN_ACTIONS_TOOL] if asked == "simple" else [])]
    return [*(tools[name] for name in names if name in tools), *own]


def messages_of(question: AgentQuestion, said: Conversation, tools: Mapping[str, ToolSpec]) -> Messages:
    """Compose the messages for a question in a conversation."""
    specs = offered(question.tools, tools, question.asked)
    notice = "" if question.problems else question.notice
    if question.asked == "tasks":
        system, end = decomposition_system(specs, said.guides, said.request), decomposition_end()
    elif question.asked == "simple" or question.tasks is None:
        system, end = simple_system(specs, said.guides, said.request), simple_end(said.has_begun, notice)
    else:
        system, end = complex_system(specs, said.guides, said.request), complex_end(question.tasks, notice)
    correction = correction_section(question.left) if question.problems else ""
    return said.messages(system, joined([end, correction]))


def repeated(answer: TaskList | AgentAnswer | SimpleAnswer, text: str) -> str:
    """A usable answer as the model will see it again: its fields, with its reasoning whatever the mode."""
    if isinstance(answer, TaskList):
        return answer_line({"tasks": [task.objective for task in answer.tasks]})
    fields = answer.model_dump(mode="json", by_alias=False)
    given = json_object(text)
    reasoning = given.get("reasoning") if isinstance(given, dict) else None
    return answer_line({"reasoning": reasoning if isinstance(reasoning, str) else "", **fields})


def expected_of(question: AgentQuestion, tools: Mapping[str, ToolSpec], about: str = "") -> Expected:
    """The expected answer. `tools`: the worker's tools by name; `about`: the request."""
    return Expected(kind=question.asked, tools=offered(question.tools, tools, question.asked), about=about)


def as_text(value: Any) -> str:
    """A tool's value as shown to a model: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

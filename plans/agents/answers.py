"""What a model answers an agent with (DESIGN 2.7): values only; `plans.agents.tasks` says what they mean.

Names are read as the contract writes them (`tool_calls`) and in camelCase. A field that is null, empty or missing is
absent: an endpoint with strict schemas has to write every field, and writes null for those it does not use.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from plans.definition.parsing import parse_json
from plans.model import ToolName, Value

Confidence = Literal["high", "medium", "low"]


def _text(value: Any) -> Any:
    """Absent as the empty text; data given as an answer as its JSON text."""
    if isinstance(value, dict | list | int | float) and not isinstance(value, bool):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value.strip() if isinstance(value, str) else value


def _calls(value: Any) -> Any:
    return [] if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class ToolUse(Value):
    """A tool a model wants called."""

    tool: ToolName = Field(description="Name of the tool.")
    args: dict[str, Any] = Field(default_factory=dict, description="Its arguments.")

    @field_validator("args", mode="before")
    @classmethod
    def _decoded(cls, value: Any) -> Any:
        """Arguments may come as a JSON text, the way native tool calls carry them."""
        if isinstance(value, str):
            return parse_json(value) if value.strip() else {}
        return {} if value is None else value


ToolUses = Annotated[list[ToolUse], BeforeValidator(_calls), Field(default_factory=list, max_length=100)]


class AgentAnswer(Value):
    """An answer in complex mode."""

    reasoning: Text = Field(default="", description="What the model is doing, and why.")
    tool_calls: ToolUses = Field(description="Tools to call; goes on.")
    task_completed: Text = Field(default="", description="The current task is finished: its summary.")
    final_answer: Text = Field(default="", description="All tasks are finished: the answer.")

    @property
    def final(self) -> str:
        """The answer that ends the run; empty when it goes on."""
        return self.final_answer

    @property
    def fields(self) -> tuple[bool, bool, bool, bool]:
        """Which of reasoning, tool_calls, task_completed and final_answer are present."""
        return bool(self.reasoning), bool(self.tool_calls), bool(self.task_completed), bool(self.final_answer)


class SimpleAnswer(Value):
    """An answer in simple mode."""

    tool_calls: ToolUses = Field(description="Tools to call; goes on.")
    answer: Text = Field(default="", description="The answer; stops.")
    confidence: Confidence | None = Field(default=None, description="How sure the model is.")

    @property
    def final(self) -> str:
        """The answer that ends the run; empty when it goes on."""
        return self.answer

    @field_validator("confidence", mode="before")
    @classmethod
    def _folded(cls, value: Any) -> Any:
        return (value.strip().lower() or None) if isinstance(value, str) else value

"""The typed answers of an agent's model (DESIGN 2.7). Only values: `model.tasks` decides what they mean.

Field names are accepted in snake_case (`tool_calls`) and in camelCase. A null, empty or missing field counts as absent:
an endpoint with strict schemas must write every field, so it writes null for those it does not use.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from plansurvive.plans.definition.parsing import parse_json
from plansurvive.plans.model import ToolName, Value

Confidence = Literal["high", "medium", "low"]


def _text(value: Any) -> Any:
    """A text without surrounding space; null becomes "", numbers, lists and objects their JSON text."""
    if isinstance(value, dict | list | int | float) and not isinstance(value, bool):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value.strip() if isinstance(value, str) else value


def _calls(value: Any) -> Any:
    return [] if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class ToolUse(Value):
    """A tool call that the model requests."""

    tool: ToolName = Field(description="Name of the tool.")
    args: dict[str, Any] = Field(default_factory=dict, description="Arguments of the call.")

    @field_validator("args", mode="before")
    @classmethod
    def _decoded(cls, value: Any) -> Any:
        """Accept arguments as JSON text too: native tool calls carry them that way."""
        if isinstance(value, str):
            return parse_json(value) if value.strip() else {}
        return {} if value is None else value


ToolUses = Annotated[list[ToolUse], BeforeValidator(_calls), Field(default_factory=list, max_length=100)]


class AgentAnswer(Value):
    """An answer in complex mode: work through a task list."""

    reasoning: Text = Field(default="", description="What the model is doing, and why.")
    tool_calls: ToolUses = Field(description="Tools to call; the run continues.")
    task_completed: Text = Field(default="", description="Summary of the current task, which is thereby completed.")
    final_answer: Text = Field(default="", description="The answer, once all tasks are completed.")

    @property
    def final(self) -> str:
        """The answer that ends the run; empty if the run continues."""
        return self.final_answer

    @property
    def fields(self) -> tuple[bool, bool, bool, bool]:
        """Presence of reasoning, tool_calls, task_completed and final_answer: the key of `tasks.MEANINGS`."""
        return bool(self.reasoning), bool(self.tool_calls), bool(self.task_completed), bool(self.final_answer)


class SimpleAnswer(Value):
    """An answer in simple mode: no task list."""

    tool_calls: ToolUses = Field(description="Tools to call; the run continues.")
    answer: Text = Field(default="", description="The answer, which ends the run.")
    confidence: Confidence | None = Field(default=None, description="How confident the model is.")

    @property
    def final(self) -> str:
        """The answer that ends the run; empty if the run continues."""
        return self.answer

    @field_validator("confidence", mode="before")
    @classmethod
    def _folded(cls, value: Any) -> Any:
        return (value.strip().lower() or None) if isinstance(value, str) else value

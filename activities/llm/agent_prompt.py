"""An agent's prompt, composed where it is sent: what was said so far from the value store, and what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from activities.attempt.results import json_text
from plans.activity_io import LargeValue, Note
from plans.agents.llm_request import ChatMessage, LlmRequest
from plans.agents.question import AgentQuestion, Conversation, Outcome, expected_of, prompt_of
from plans.llm.prompt_parts import Guide, ToolOutcome
from plans.model import ToolSpec
from runtime.value_store import ValueStore


class Composed(NamedTuple):
    """A request that can be sent, and what goes with it."""

    request: LlmRequest
    output_schema: dict[str, Any] | None = None
    """Of an agent's final answer."""
    conversation: LargeValue | None = None
    """What was said so far, as stored for the next question."""


async def compose(
    request: LlmRequest, question: AgentQuestion, values: ValueStore, tools: Mapping[str, ToolSpec]
) -> Composed:
    """The request of an agent with its messages and what is expected back."""
    earlier = await values.get(question.conversation) if question.conversation else {}
    guides = [await _guide(note, values) for note in question.guides]
    outcomes = await _outcomes(question.outcomes, values)
    said = Conversation.model_validate(earlier).plus(question, guides, outcomes)
    messages = [ChatMessage.model_validate(message) for message in prompt_of(question, said, tools).messages]
    stored = await values.put(json_text(said))
    return Composed(
        request.model_copy(update={"messages": messages, "expected": expected_of(question, tools)}),
        said.output_schema,
        stored.model_copy(update={"preview": ""}),
    )


async def _outcomes(outcomes: Sequence[Outcome], values: ValueStore) -> list[ToolOutcome]:
    return [each.shown(await values.get(each.large) if each.large else None) for each in outcomes]


async def _guide(note: Note, values: ValueStore) -> Guide:
    text = await values.get(note.large) if note.large else note.text
    return Guide(path=note.path, text=str(text or ""))

"""An agent's prompt, composed where it is sent: what was said so far from the value store, and what is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from activities.attempt.results import json_text
from plans.activity_io import LargeValue, Note
from plans.agents.llm_request import ChatMessage, LlmRequest
from plans.agents.question import AgentQuestion, Conversation, Outcome, prompt_of, schema_of
from plans.llm.prompt_parts import Guide, ToolOutcome
from plans.model import ToolSpec
from runtime.value_store import ValueStore


async def compose(
    request: LlmRequest, question: AgentQuestion, values: ValueStore, tools: Mapping[str, ToolSpec]
) -> tuple[LlmRequest, LargeValue]:
    """The request with its messages and schema, and the conversation as it is kept for the next one."""
    earlier = await values.get(question.conversation) if question.conversation else {}
    guides = [await _guide(note, values) for note in question.guides]
    outcomes = await _outcomes(question.outcomes, values)
    said = Conversation.model_validate(earlier).plus(question.request, guides, outcomes)
    prompt = prompt_of(question, said, tools)
    changes = {
        "messages": [ChatMessage.model_validate(message) for message in prompt.messages],
        "json_schema": schema_of(question, tools),
    }
    kept = await values.put(json_text(said))
    return request.model_copy(update=changes), kept.model_copy(update={"preview": ""})


async def _outcomes(outcomes: Sequence[Outcome], values: ValueStore) -> list[ToolOutcome]:
    return [each.shown(await values.get(each.large) if each.large else None) for each in outcomes]


async def _guide(note: Note, values: ValueStore) -> Guide:
    text = await values.get(note.large) if note.large else note.text
    return Guide(path=note.path, text=str(text or ""))

"""Input and output types of the `ask_llm` activity.

It takes an `LlmRequest` and returns an `LlmAnswer` with the typed answer. An unusable answer is a result, not an
error: `problem` and `problems` describe it in words the model understands, and the caller sends it back for
correction. Both types are read from recorded histories, so unknown fields (such as one removed since) are ignored.

A request has its messages, or a part of a feature from which the worker composes them (activities/llm/composing.py).

Failures are application errors with one of these codes; LLM_UNAVAILABLE and LLM_BAD_ANSWER may have been retried.

    LLM_NO_KEY        no key is set, but the endpoint needs one      LLM_REFUSED      the model or a filter declined
    LLM_KEY           the endpoint rejected the key                  LLM_TRUNCATED    the answer was cut off
    LLM_MODEL         the model is not set, or is unknown            LLM_BAD_ANSWER   the response breaks the protocol
    LLM_REQUEST       the endpoint rejected the request              LLM_UNAVAILABLE  overloaded, down or timed out
    LLM_QUOTA         the account's quota is used up                 LLM_TOO_LONG     the context window is exceeded
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.llm.answers import Expected
from plansurvive.plans.model import Value
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.usage import Usage

BAD_ANSWER = "LLM_BAD_ANSWER"
TRUNCATED = "LLM_TRUNCATED"
TOO_LONG = "LLM_TOO_LONG"
MAX_TEXT_BYTES = 1024 * 1024
"""Maximum length of an answer, in bytes."""

Mode = Literal["json_schema", "json_object", "text"]


class ChatMessage(Value):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class LlmRequest(Parted, Value):
    """Input of `ask_llm`: one request, answered with one JSON object."""

    model_config = ConfigDict(extra="ignore")

    purpose: str = Field(description="Purpose, for people: plan, correction, recovery, agent, ...")
    messages: list[ChatMessage] = Field(
        default_factory=list, description="The messages to send; empty if the worker composes them from a part."
    )
    expected: Expected | None = Field(
        default=None, description="What the answer must be; None if it follows from a part, or is `json_schema` alone."
    )
    schema_name: str = Field(default="answer", pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Name of the schema.")
    json_schema: dict[str, Any] = Field(
        default_factory=dict, description="JSON Schema of the object; derived from `expected` if set."
    )
    key: str = Field(
        default="", description="Idempotency key: the same for all attempts of this request, unique to it."
    )


class LlmAnswer(Parted, Value):
    """Output of `ask_llm`: the answer and its cost."""

    model_config = ConfigDict(extra="ignore")

    text: str = Field(description="The unusable answer as received, or JSON text; empty if `parsed` is set.")
    problem: str = Field(default="", description="Why the answer is not usable; empty if it is.")
    problems: list[str] = Field(default_factory=list, description="Each problem, starting with its location.")
    parsed: dict[str, Any] | None = Field(
        default=None, description="The answer as JSON data; None if it was not parsed or has a problem."
    )
    usage: Usage = Field(default_factory=Usage, description="Tokens of the successful attempt.")
    model: str = Field(description="Name of the model, from the endpoint's response.")
    finish_reason: str = Field(default="stop", description="From the endpoint's response.")
    mode: Mode = Field(description="Response format that was requested.")
    duration: float = Field(default=0.0, description="Duration of the successful attempt, in milliseconds.")
    attempt: int = Field(default=1, description="Number of the successful attempt; only endpoint errors count.")
    attempts: list[Attempt] = Field(default_factory=list, description="The attempts before, oldest first.")

"""What crosses the border when an LLM is asked: one typed value each way.

`ask_llm` takes an `LlmRequest` and returns an `LlmAnswer`. An answer that is no single JSON object is still an answer:
its `problem` says what is wrong in words the model understands, so that the caller can send it back for correction.
What another attempt cannot mend is an application error with one of the codes below.

    LLM_NO_KEY        no key is set for an endpoint that needs one   LLM_REFUSED      the model or a filter declined
    LLM_KEY           the endpoint does not accept the key           LLM_TRUNCATED    the answer was cut off
    LLM_MODEL         no model is named, or nobody knows it          LLM_BAD_ANSWER   not what the protocol promises
    LLM_REQUEST       the endpoint finds the request wrong           LLM_UNAVAILABLE  busy, down, slow: tried again
    LLM_QUOTA         the account has nothing left to spend          LLM_TOO_LONG     more than the model takes at once
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from plans.activity_io import LargeValue
from plans.agents.question import AgentQuestion
from plans.budget import Usage
from plans.model import Retry, Value

BAD_ANSWER = "LLM_BAD_ANSWER"
MAX_TEXT_BYTES = 1024 * 1024
"""Longest answer that is passed on."""

Mode = Literal["json_schema", "json_object", "text"]


class ChatMessage(Value):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


class LlmRequest(Value):
    """One question to the LLM, expecting one JSON object."""

    purpose: str = Field(description="What it is for: plan, correction, recovery, agent, ...; for people and checks.")
    messages: list[ChatMessage] = Field(default_factory=list, description="The conversation so far.")
    messages_large: LargeValue | None = Field(default=None, description="A stored list of messages that comes first.")
    agent: AgentQuestion | None = Field(default=None, description="Messages and schema are composed from this.")
    schema_name: str = Field(default="answer", pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Names the schema.")
    json_schema: dict[str, Any] = Field(default_factory=dict, description="JSON Schema of the object expected back.")
    model: str | None = Field(default=None, description="The model; the worker's own when none is named.")
    max_tokens: int | None = Field(default=None, ge=1, description="Longest answer; none: the endpoint decides.")
    key: str = Field(default="", description="The same over all attempts of the call, different for every other call.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds one attempt may take, at most the worker's.")
    retry: Retry = Field(
        default=Retry(attempts=5, delay=2.0, factor=2.0),
        description="Attempts and waits when the endpoint is busy or down; a worker's death does not count.",
    )


class LlmAnswer(Value):
    """What the LLM said, and what it took."""

    text: str = Field(description="JSON text of the object; when there is a problem, the answer as it came.")
    problem: str = Field(default="", description="Why the text is not what was asked for; empty when it is.")
    usage: Usage = Field(default_factory=Usage, description="Of the attempt that was answered.")
    model: str = Field(description="The model as the endpoint calls it.")
    finish_reason: str = Field(default="stop", description="As the endpoint gives it.")
    mode: Mode = Field(description="How the endpoint was asked for JSON.")
    duration: float = Field(default=0.0, description="Milliseconds, of the attempt that was answered.")
    conversation: LargeValue | None = Field(default=None, description="Of an agent: what was said so far.")
    attempt: int = Field(default=1, description="Which attempt was answered, errors of the endpoint counted only.")

    @property
    def parsed(self) -> dict[str, Any] | None:
        """The object, or None when there is a problem."""
        if self.problem:
            return None
        value: dict[str, Any] = json.loads(self.text)
        return value


class SnapshotRequest(Value):
    """What the LLM is to be shown of a workspace."""

    workspace: str = Field(description="Absolute directory.")
    max_bytes: int = Field(default=24_000, ge=1_000, le=200_000, description="Longest text.")


class Snapshot(Value):
    """A workspace as a text for the LLM: its files by name, and the beginnings of small text files."""

    text: str
    files: int = Field(description="Files and directories named.")
    complete: bool = Field(description="Whether every file that is not ignored is named.")

"""Input and output types of the `ask_llm` activity.

It takes an `LlmRequest` and returns an `LlmAnswer` with the typed answer. An answer that cannot be used is still a
result: its `problem` and `problems` say what is wrong in words the model understands, and the caller sends it back for
correction. A failure that another attempt cannot cure is an application error with one of the codes below. Both are
read from recorded histories, so a field that is unknown, such as one that was dropped since, is ignored.

    LLM_NO_KEY        no key is set for an endpoint that needs one   LLM_REFUSED      the model or a filter declined
    LLM_KEY           the endpoint does not accept the key           LLM_TRUNCATED    the answer was cut off
    LLM_MODEL         no model is named, or nobody knows it          LLM_BAD_ANSWER   not what the protocol promises
    LLM_REQUEST       the endpoint finds the request wrong           LLM_UNAVAILABLE  busy, down, slow: tried again
    LLM_QUOTA         the account has nothing left to spend          LLM_TOO_LONG     more than the model takes at once
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from plans.activity_io import LargeValue
from plans.agents.question import AgentQuestion
from plans.budget import Usage
from plans.llm.answers import Expected
from plans.model import Value

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

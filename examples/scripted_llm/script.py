"""The script of a scripted LLM: maps requests to replies. Read from YAML or JSON, or created in a test.

    model: demo                      # the only model it accepts; default: any
    key: sk-demo                     # the only key it accepts; default: any
    accepts: [json_schema]           # response formats it accepts; default: all
    order: matched                   # or `listed`: each request must fit the next exchange
    exchanges:
      - when: release notes          # in any message; /regex/ works; {last:, schema:, model:} look elsewhere
        reply: {json: {steps: []}}
      - reply: {status: 429, headers: {Retry-After: "1"}}
        times: 2                     # how often it can be used: default 1; 0: without limit

The first exchange that matches and is not used up answers. Errors in a script are reported with their place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

Fault = Literal["hang", "reset", "drop", "truncated", "not_json", "html", "empty", "no_choices", "error_body"]


class ScriptError(Exception):
    """An invalid script; the message says where and what is wrong."""


class Part(BaseModel):
    """A part of a script; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolCall(Part):
    """A native tool call."""

    tool: str
    args: dict[str, Any] | str = Field(default_factory=dict, description="A text is sent unchanged, valid JSON or not.")


class Tokens(Part):
    """The token counts that the server reports."""

    prompt: int = 0
    completion: int = 0


class ReplyScript(Part):
    """A reply: a text, a JSON value, tool calls or a refusal; or an HTTP error, or a connection fault."""

    text: str | None = None
    json_value: Any = Field(default=None, alias="json")
    tool_calls: list[ToolCall] = Field(default_factory=list)
    refusal: str | None = None
    finish: str | None = Field(default=None, description="finish_reason; default: stop or tool_calls.")
    usage: Tokens | None = Field(default=None, description="Default: estimated from the length.")
    size: int = Field(default=0, ge=0, description="Pad the text with spaces to this many characters.")
    status: int = Field(default=200, ge=200, le=599)
    headers: dict[str, str] = Field(default_factory=dict)
    error: str = Field(default="", description="Message of an error status.")
    code: str = Field(default="", description="Code of an error status, such as insufficient_quota.")
    body: str | None = Field(default=None, description="The whole HTTP body, sent unchanged.")
    fault: Fault | None = None
    delay: float = Field(default=0.0, ge=0, le=3_600, description="Seconds before the answer.")

    @property
    def content(self) -> str:
        """The text of the message."""
        text = json.dumps(self.json_value, ensure_ascii=False) if self.json_value is not None else self.text or ""
        return text + " " * (self.size - len(text))


class When(Part):
    """Conditions on a request. Each is a text to contain, or a regular expression between slashes."""

    any: str = Field(default="", description="In any message.")
    last: str = Field(default="", description="In the last message.")
    schema_name: str = Field(default="", alias="schema", description="Name of the requested JSON schema.")
    model: str = ""

    def fits(self, request: Mapping[str, Any]) -> bool:
        """Whether a request meets all conditions."""
        texts = [text_of(message) for message in request.get("messages", [])]
        form = request.get("response_format") or {}
        schema = (form.get("json_schema") or {}).get("name", "")
        return (
            (not self.any or any(_matches(self.any, text) for text in texts))
            and (not self.last or _matches(self.last, texts[-1] if texts else ""))
            and (not self.schema_name or _matches(self.schema_name, schema))
            and (not self.model or _matches(self.model, str(request.get("model", ""))))
        )


class Exchange(Part):
    """An expected request, and its reply."""

    name: str = ""
    when: When = When()
    reply: ReplyScript = ReplyScript()
    times: int = Field(default=1, ge=0, description="How often it can be used; 0: without limit.")

    @field_validator("when", mode="before")
    @classmethod
    def _text_is_any(cls, value: Any) -> Any:
        return {"any": value} if isinstance(value, str) else value


class Script(Part):
    """A whole script."""

    model: str = ""
    key: str = ""
    accepts: list[Literal["json_schema", "json_object"]] = ["json_schema", "json_object"]
    order: Literal["matched", "listed"] = "matched"
    exchanges: list[Exchange]

    @model_validator(mode="after")
    def _patterns_are_sound(self) -> Self:
        for number, exchange in enumerate(self.exchanges, 1):
            for pattern in (exchange.when.any, exchange.when.last, exchange.when.schema_name, exchange.when.model):
                try:
                    _matches(pattern, "")
                except re.error as error:
                    raise ValueError(f"exchange {number}: {pattern} is not a regular expression: {error}") from None
        return self

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a script from a file. Raises ScriptError."""
        try:
            return cls.of(yaml.safe_load(path.read_text(encoding="utf-8")), str(path))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ScriptError(f"{path}: {error}") from None

    @classmethod
    def of(cls, value: Any, name: str = "script") -> Self:
        """Create a script from a mapping or a list of exchanges. Raises ScriptError."""
        try:
            return cls.model_validate({"exchanges": value} if isinstance(value, list) else value)
        except ValidationError as error:
            lines = [f"{'.'.join(map(str, each['loc'])) or 'script'}: {each['msg']}" for each in error.errors()]
            raise ScriptError(f"{name}: " + "; ".join(lines)) from None


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, with its parts joined."""
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return str(content or "")


def _matches(pattern: str, text: str) -> bool:
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        return re.search(pattern[1:-1], text, re.DOTALL) is not None
    return pattern in text

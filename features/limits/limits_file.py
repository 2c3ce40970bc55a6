"""Reads `limits.toml`: how often, and how many at the same time, tools are called and the LLM is asked.

    [tools.http_request]
    rate = ["10/second", "600/minute"]
    concurrency = 4
    key = "host(args.url)"             # each host has a limit of its own

    [tools."tracker.*"]                # the tools of a server together
    rate = "60/minute"

    [queues.gpu]                       # all steps of a task queue
    concurrency = 2

    [llm]
    requests = "60/minute"
    tokens = "90000/minute"

There is one file, the operator's: in the state directory, or where PLANS_LIMITS says. All workers of a task queue
share its limits; what they hold is kept by `LimitsWorkflow`, not here.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints, field_validator

from plansurvive.features.limits.rates import Rate, rate_of
from plansurvive.features.limits.settings import LimitSettings
from plansurvive.plans.model import Value
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.toml_file import read_text
from plansurvive.runtime.toml_shape import shaped, wrong

FILE = "limits.toml"
"""Name of the file in the state directory, unless PLANS_LIMITS names another."""
SETTING = "PLANS_LIMITS"
MAY_DO = "lift the limits or let nothing start"
"""What others could do who may change the file."""
_TABLES = {
    "tools": ("[tools.http_request]", 'rate = "60/minute"'),
    "queues": ("[queues.gpu]", "concurrency = 2"),
    "llm": ("[llm]", 'requests = "60/minute"'),
}
"""A table of each kind, and a line of it."""
_KEY = re.compile(r"(host\()?args((?:\.[A-Za-z_][A-Za-z0-9_-]{0,127}){1,10})(?(1)\))")


def _rates(value: object) -> object:
    """A rate or a list of rates as text."""
    texts = value if isinstance(value, list) else [value]
    found = [text for text in texts if isinstance(text, str)]
    if len(found) != len(texts):
        raise ValueError('write a rate as text, such as "60/minute", or a list of such texts')
    return tuple(rate_of(text) for text in found)


Rates = Annotated[tuple[Rate, ...], BeforeValidator(_rates), Field(max_length=5)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s\[\]\x00-\x1f]+$")]
Concurrency = Annotated[int | None, Field(ge=1, le=1_000_000, strict=True)]


class Limit(Value):
    """The limit of a tool, or of the tools that a pattern names, or of a queue."""

    rate: Rates = Field(default=(), description="Calls in any period; attempts count each.")
    concurrency: Concurrency = Field(default=None, description="Calls at the same time.")
    key: str = Field(
        default="", max_length=400, description="Argument; the limit applies to each of its values separately."
    )

    @field_validator("key")
    @classmethod
    def _key_can_be_read(cls, key: str) -> str:
        if key and not _KEY.fullmatch(key):
            raise ValueError('write which argument it is, such as "args.account", or "host(args.url)"')
        return key

    @property
    def path(self) -> tuple[str, ...]:
        """Where in the arguments the key is."""
        match = _KEY.fullmatch(self.key)
        return tuple(match[2].strip(".").split(".")) if match else ()

    @property
    def is_host(self) -> bool:
        """Whether the key is the host of a URL."""
        return self.key.startswith("host(")


class QueueLimit(Value):
    """The limit of all steps of a task queue."""

    rate: Rates = Field(default=(), description="Attempts that begin in any period.")
    concurrency: Concurrency = Field(default=None, description="Attempts at the same time.")


class LlmLimit(Value):
    """The limit of requests to the LLM."""

    requests: Rates = Field(default=(), description="Requests in any period.")
    tokens: Rates = Field(default=(), description="Tokens of prompts and answers in any period.")
    concurrency: Concurrency = Field(default=None, description="Requests at the same time.")


class LimitsFile(Value):
    """The content of a limits.toml."""

    tools: dict[Name, Limit] = Field(default_factory=dict, max_length=200)
    queues: dict[Name, QueueLimit] = Field(default_factory=dict, max_length=200)
    llm: LlmLimit = Field(default_factory=LlmLimit)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return not (self.tools or self.queues) and self.llm == LlmLimit()

    @property
    def texts(self) -> Mapping[str, str]:
        """Each limit as one line, by the name under which its use is listed."""
        found = {f"tools.{name}": _said(limit.rate, limit.concurrency, limit.key) for name, limit in self.tools.items()}
        found |= {f"queues.{name}": _said(limit.rate, limit.concurrency) for name, limit in self.queues.items()}
        if self.llm.requests or self.llm.concurrency:
            found["llm"] = _said(self.llm.requests, self.llm.concurrency)
        if self.llm.tokens:
            found["llm.tokens"] = _said(self.llm.tokens, None)
        return {name: f"{name}: {text}, not used now" for name, text in found.items()}

    def of_tool(self, tool: str) -> Mapping[str, Limit]:
        """The limits of a tool by name or pattern."""
        return {name: limit for name, limit in self.tools.items() if fnmatch.fnmatchcase(tool, name)}


def _said(rates: tuple[Rate, ...], concurrency: int | None, key: str = "") -> str:
    parts = [rate.text for rate in rates] + ([f"{concurrency} at a time"] if concurrency else [])
    return ", ".join(parts) + (f", for each {key}" if key else "")


def file_of(settings: Settings) -> Path:
    """Where the limits are read from."""
    return settings.of(LimitSettings).limits or settings.state_dir / FILE


def read_limits(settings: Settings) -> LimitsFile:
    """The limits; none if there is no file and none is named. Raises SettingError."""
    path = file_of(settings)
    text = read_text(path, SETTING, is_named=settings.of(LimitSettings).limits is not None, may_do=MAY_DO)
    return LimitsFile() if text is None else _checked(path, text)


def _checked(path: Path, text: str) -> LimitsFile:
    found = shaped(LimitsFile, text, path, SETTING, examples=_TABLES)
    if problems := list(_problems(found)):
        raise wrong(text, path, SETTING, problems)
    return found


def _problems(found: LimitsFile) -> Iterator[tuple[tuple[str, ...], str]]:
    """Tables that limit nothing: a name that was forgotten must not pass for a limit."""
    for kind, tables in (("tools", found.tools), ("queues", found.queues)):
        for name, limit in tables.items():
            if not limit.rate and limit.concurrency is None:
                yield (kind, name), "it limits nothing; write a rate, concurrency or both"

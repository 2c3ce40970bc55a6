"""Who is notified about a plan, and when: the field `notify`. It names targets; where they are, only the operator says.

A plan may be written by an LLM or by a stranger, so it never holds an address or a secret: a target is a name of the
worker's `notify.toml` (`features.notify.targets`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from plansurvive.plans.model.values import Value
from plansurvive.plans.text.spans import SECONDS_OF

Event = Literal["awaiting", "budget", "failed", "partial", "completed", "cancelled"]
"""What a person can be told: that a decision waits, that an LLM budget is (nearly) used up, and how a plan ended."""
USUAL: tuple[Event, ...] = ("awaiting", "budget", "failed", "partial", "completed")
"""Events of a rule that names none. Whoever cancels a plan knows of it."""
WAITING: tuple[Event, ...] = ("awaiting", "budget")
"""Those that ask for something; the others say how a plan ended."""
MAX_RULES = 20
NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
_TARGET = {"type": "string", "pattern": NAME}
_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|m|h|d)")
_YEAR = 31_536_000.0


def _name(text: str) -> str:
    if not re.fullmatch(NAME, text):
        raise ValueError("a target is a name of notify.toml, such as 'team'; addresses and secrets belong there")
    return text


def _seconds(value: Any) -> Any:
    """`30m`, `4h`, `1d` in seconds; anything else as it is."""
    found = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(found[1]) * SECONDS_OF[found[2]] if found else value


Target = Annotated[str, AfterValidator(_name), WithJsonSchema(_TARGET)]
Span = Annotated[
    float,
    BeforeValidator(_seconds),
    Field(ge=1, le=_YEAR, strict=True),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 1}, {"type": "string", "pattern": f"^{_SPAN.pattern}$"}]}),
]
"""Seconds, or a text such as `30m`."""


class Escalation(Value):
    """Who else is notified of a decision that still waits, and after how long."""

    after: Span = Field(description="Seconds that a decision has waited, or a text such as `4h`.")
    to: Target = Field(description="Name of the target.")


class _OneOrMany:
    """JSON Schema of a list that may be written as its only item, and whose items may be names."""

    def __init__(self, *, named: bool) -> None:
        self._named = named

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(core)
        one = found["items"]
        one = {"anyOf": [_TARGET, one]} if self._named else one
        return {"anyOf": [one, {**found, "items": one}]}


def _several(value: Any) -> Any:
    return [value] if isinstance(value, (str, Mapping)) else value


def _rules(value: Any) -> Any:
    """A name, a rule, or a list of both, as a list of rules."""
    several = _several(value)
    return [{"to": each} if isinstance(each, str) else each for each in several] if isinstance(several, list) else value


class NotifyRule(Value):
    """Who is notified of which events, and what follows while nobody decides."""

    on: Annotated[
        list[Event], BeforeValidator(_several), _OneOrMany(named=False), Field(min_length=1, max_length=6)
    ] = Field(default_factory=lambda: list(USUAL), description="Events; all but `cancelled` if omitted.")
    to: Target = Field(description="Name of a target of the worker's notify.toml.")
    remind: Span | None = Field(default=None, description="Seconds between reminders of what still waits, or `1h`.")
    escalate: Escalation | None = Field(default=None, description="Who is notified of what has waited too long.")


Notify = Annotated[list[NotifyRule], BeforeValidator(_rules), _OneOrMany(named=True), Field(max_length=MAX_RULES)]
"""What a plan may say: the name of a target, a rule, or a list of both."""


def targets_of(rules: Sequence[NotifyRule]) -> list[str]:
    """The targets that rules name, each once."""
    named = [name for rule in rules for name in (rule.to, rule.escalate.to if rule.escalate else "") if name]
    return list(dict.fromkeys(named))

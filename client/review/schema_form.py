"""A form for a tool's arguments, generated from its JSON schema: fields, values as text, and text as values.

Pure: no I/O. Strings and numbers are typed as text, booleans and enums are chosen, everything else is written as JSON.
Every field accepts a reference (`$step`, `{{step}}`). A text with control characters is shown as JSON, so that it
cannot draw on the screen and is read back unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

from plans.model import ToolSpec
from plans.views.safe_text import line, safe

Kind = Literal["text", "integer", "number", "choice", "json"]


class _Absent:
    """Marks an argument that is not given."""

    def __repr__(self) -> str:
        return "not given"


ABSENT = _Absent()


class Unreadable(ValueError):
    """The text in a field is not a valid value for it."""


@dataclass(frozen=True)
class Field:
    """One argument in a form."""

    name: str
    kind: Kind
    label: str
    value: Any = ABSENT
    required: bool = False
    choices: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """The value as text; for a choice the JSON of the chosen value."""
        return text_of(self.kind, self.value)

    def read(self, text: str) -> Any:
        """Parse the text of this field; ABSENT if it is empty. Raises Unreadable."""
        if text == self.text:
            return self.value
        if self.kind == "text":
            return ABSENT if not text and not self.required else text
        if not text.strip():
            return ABSENT
        if self.kind in ("integer", "number"):
            return _number(self.kind, text.strip())
        return _json(text.strip())


def fields(spec: ToolSpec | None, args: Mapping[str, Any]) -> list[Field]:
    """One field per argument of the tool, plus one per unknown argument; all JSON for an unknown tool."""
    properties: Mapping[str, Any] = spec.args_schema.get("properties", {}) if spec else {}
    required = spec.args_schema.get("required", []) if spec else []
    found = [_field(name, schema, args.get(name, ABSENT), name in required) for name, schema in properties.items()]
    unknown = "not an argument of the tool; clear it to remove it" if spec else "JSON"
    found += [Field(name, "json", unknown, value) for name, value in args.items() if name not in properties]
    return found


def text_of(kind: Kind, value: Any) -> str:
    """Format a value as the text of a field of this kind."""
    if value is ABSENT:
        return ""
    if kind == "text" or (kind in ("integer", "number") and isinstance(value, str)):
        return str(value)
    text = json.dumps(value, ensure_ascii=False, indent=None if kind == "choice" else 2)
    return text if safe(text) == text else json.dumps(value, indent=2)


def _field(name: str, schema: Mapping[str, Any], value: Any, required: bool) -> Field:
    plain = _without_null(schema)
    choices = tuple(plain.get("enum", ())) or ((True, False) if plain.get("type") == "boolean" else ())
    kind = _kind(plain, choices, value)
    return Field(name, kind, _label(schema, kind, required), value, required, choices)


def _kind(schema: Mapping[str, Any], choices: tuple[Any, ...], value: Any) -> Kind:
    kind = schema.get("type")
    is_text = isinstance(value, str) and not _unsafe(value)
    if choices:
        return "choice" if value is ABSENT or value in choices else "json"
    if kind == "string":
        return "text" if is_text or value is ABSENT else "json"
    if kind in ("integer", "number"):
        fits = value is ABSENT or is_text or (isinstance(value, int | float) and not isinstance(value, bool))
        return kind if fits else "json"
    return "json"


def _unsafe(text: str) -> bool:
    return safe(text) != text


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    return {**schema, **options[0]} if len(options) == 1 else schema


def _label(schema: Mapping[str, Any], kind: Kind, required: bool) -> str:
    names = {"text": "text", "integer": "whole number", "number": "number", "choice": "choice", "json": "JSON"}
    parts = [names[kind], "required" if required else ""]
    default = schema.get("default")
    parts.append(f"{json.dumps(default)} by default" if default is not None else "")
    head = ", ".join(part for part in parts if part)
    text = line(str(schema.get("description", "")))
    return f"{head} - {text}" if text else head


def _number(kind: Kind, text: str) -> Any:
    if text.startswith("$") or "{{" in text:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        value = None
    wanted = int if kind == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise Unreadable(f"{text[:40]!r} is not a {'whole number' if kind == 'integer' else 'number'}")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        if text.startswith("$") and "\n" not in text:
            return text
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise Unreadable(f'not valid JSON, {where}; write a text in quotes: "..."') from None


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")

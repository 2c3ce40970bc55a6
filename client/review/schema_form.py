"""A form for a tool's arguments, generated from its JSON schema: fields, values as text, and text as values.

Pure: no I/O. Which kind of field a schema asks for is decided in `client.forms.kinds`. Strings and numbers are typed as
text, booleans and enums are chosen, everything else is written as JSON. Every field accepts a reference (`$step`,
`{{step}}`). A text with control characters is shown as JSON, so that it cannot draw on the screen and is read back
unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from client.forms.kinds import Choice, Kind, Schema, is_one_of, kind_of, properties_of, required_of
from client.forms.texts import ABSENT, is_plain, is_reference, json_value, number, text_of
from plans.model import ToolSpec
from plans.views.safe_text import line


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
            return text.strip() if is_reference(text.strip()) else number(self.kind, text.strip())
        return text.strip() if text.strip().startswith("$") and "\n" not in text.strip() else json_value(text.strip())


def fields(spec: ToolSpec | None, args: Mapping[str, Any]) -> list[Field]:
    """One field per argument of the tool, plus one per unknown argument; all JSON for an unknown tool."""
    properties = properties_of(spec.args_schema) if spec else {}
    required = required_of(spec.args_schema) if spec else ()
    root = spec.args_schema if spec else {}
    found = [_field(name, each, args.get(name, ABSENT), name in required, root) for name, each in properties.items()]
    unknown = "not an argument of the tool; clear it to remove it" if spec else "JSON"
    found += [Field(name, "json", unknown, value) for name, value in args.items() if name not in properties]
    return found


def _field(name: str, schema: Any, value: Any, required: bool, root: Schema) -> Field:
    asked = kind_of(schema, root)
    choices = tuple(choice.value for choice in asked.choices)
    kind = _kind(asked.kind, asked.choices, value)
    return Field(name, kind, _label(schema, kind, required), value, required, choices)


def _kind(kind: Kind, choices: tuple[Choice, ...], value: Any) -> Kind:
    """The kind of field that can show the value; a field for a list or an object is drawn as JSON here."""
    if value is ABSENT:
        return "json" if kind in ("list", "object") else kind
    if kind == "choice":
        return "choice" if is_one_of(choices, value) else "json"
    if kind in ("integer", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return kind if is_number or is_plain(value) else "json"
    return "text" if kind == "text" and is_plain(value) else "json"


def _label(schema: Any, kind: Kind, required: bool) -> str:
    names = {"text": "text", "integer": "whole number", "number": "number", "choice": "choice", "json": "JSON"}
    given = schema if isinstance(schema, Mapping) else {}
    parts = [names[kind], "required" if required else ""]
    default = given.get("default")
    parts.append(f"{json.dumps(default)} by default" if default is not None else "")
    head = ", ".join(part for part in parts if part)
    text = line(str(given.get("description", "")))
    return f"{head} - {text}" if text else head

"""The form that a question becomes on a terminal: one prompt per field of an object, else a single one.

Pure: knows no terminal. It is entered line by line; a line that does not fit is refused with the reason, and the same
field is asked for again. An empty line takes the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.client.forms.flat import flat_fields
from plansurvive.client.forms.texts import ABSENT, Unreadable
from plansurvive.client.forms.tree import Node
from plansurvive.plans.definition.questions import as_typed, has_default, misfit, schema_of, value_of
from plansurvive.plans.text.safe_text import line


class Form:
    """One question being answered."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        self._args = args
        self._fields = _fields(args)
        self._values: dict[str, Any] = {}
        self._value: Any = ABSENT

    @property
    def is_done(self) -> bool:
        """Whether the question is answered."""
        return self._value is not ABSENT

    @property
    def value(self) -> Any:
        """The answer."""
        return self._value

    @property
    def rows(self) -> list[str]:
        """What may be entered, as far as that is a list."""
        choices = self._args.get("choices") or []
        return [f"  {number}  {line(as_typed(choice))}" for number, choice in enumerate(choices, 1)]

    @property
    def prompt(self) -> str:
        """What to enter next."""
        if not self._fields:
            return f"answer{self._default_text(self._args.get('default') if has_default(self._args) else ABSENT)}: "
        field = self._fields[len(self._values)]
        return f"{line(field.name)} ({line(field.label)}){self._default_text(field.value)}: "

    def enter(self, text: str) -> str:
        """Take a line. Returns why it does not fit; empty if it does."""
        text = text.strip()
        if not self._fields:
            return self._finish(self._single(text))
        field = self._fields[len(self._values)]
        try:
            value = field.value if not text else field.read(text)
        except Unreadable as error:
            return str(error)
        if value is ABSENT and field.required:
            return f"'{line(field.name)}' is needed"
        self._values[field.name] = value
        if len(self._values) < len(self._fields):
            return ""
        return self._finish({name: each for name, each in self._values.items() if each is not ABSENT})

    def _single(self, text: str) -> Any:
        if not text and has_default(self._args):
            return self._args["default"]
        choices = self._args.get("choices") or []
        value = value_of(self._args, text)
        if choices and misfit(self._args, value) and text.isdecimal() and 1 <= int(text[:4]) <= len(choices):
            return choices[int(text[:4]) - 1]
        return value

    def _finish(self, value: Any) -> str:
        why = misfit(self._args, value)
        if why:
            self._values = {}
            return why
        self._value = value
        return ""

    def _default_text(self, value: Any) -> str:
        return "" if value is ABSENT else f" [{line(as_typed(value))}]"


def _fields(args: Mapping[str, Any]) -> list[Node]:
    """The fields of an object; empty for any other question, and for a schema that is no plain list of fields."""
    schema = schema_of(args)
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict) or not properties:
        return []
    if not all(isinstance(each, dict) and _is_plain(each) for each in properties.values()):
        return []
    default = args.get("default")
    given = {name: each for name, each in default.items() if name in properties} if isinstance(default, dict) else {}
    own = {name: each["default"] for name, each in properties.items() if each.get("default") is not None}
    return flat_fields(schema, {**own, **given})


def _is_plain(schema: Mapping[str, Any]) -> bool:
    return all(isinstance(option, dict) for option in schema.get("anyOf", ()))

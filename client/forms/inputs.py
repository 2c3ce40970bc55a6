"""The form of a plan's inputs: fields by their types, a list and an object by fields of their own or as one JSON text.

Pure. What is typed stays, with errors at their fields; a row of a list is asked for with a button, without JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from plansurvive.client.forms.errors import errors_of
from plansurvive.client.forms.schema_form import MORE, Field, SchemaForm, schema_of_inputs
from plansurvive.client.forms.texts import ABSENT, Unreadable, json_value
from plansurvive.plans.model import Input, Problem

NAME = "input"
PREFIX = f"{NAME}."
"""Before the names of inputs in a form."""
Sent = Sequence[tuple[str, str]]
"""Names and texts, as a browser sends them."""


class InputField(NamedTuple):
    """One input as the page draws it."""

    field: Field
    json: str | None = None
    """The text that counts instead of the fields of a list or object, if it is not empty; None: it has none."""


@dataclass(frozen=True)
class Filled:
    """The inputs of a form."""

    fields: list[InputField]
    values: Mapping[str, Any] = field(default_factory=dict)
    """What was given; an input that is not in it has its default."""
    problems: list[Problem] = field(default_factory=list)
    is_complete: bool = True
    """False: another row of a list was asked for, and nothing is to be started."""


def filled(inputs: Mapping[str, Input], sent: Sent) -> Filled:
    """The form of inputs with what was sent; without that, with their defaults."""
    schema = schema_of_inputs(inputs)
    # A text without a default may be empty.
    empty = {name: "" for name, each in inputs.items() if each.type == "string" and each.default is None}
    form = SchemaForm(schema, empty, name=NAME, loose=True)
    sent = sent_of(sent)
    if not sent:
        return Filled([_drawn(each, {}) for each in form.field.fields])
    read = form.read(sent)
    names = dict(zip((each.name for each in form.field.fields), inputs, strict=True))
    texts = _json_texts(form.field.fields, sent)
    values = {name: each for name, each in read.value.items() if each is not ABSENT}
    errors = {name: why for name, why in read.errors.items() if not any(_is_in(name, each) for each in texts)}
    for name, text in texts.items():
        values.pop(names[name], None)
        value, why = _read(text, inputs[names[name]])
        values |= {} if why else {names[name]: value}
        errors |= {name: why} if why else {}
    if not read.is_complete:
        return Filled([_drawn(each, texts) for each in read.field.fields], values, is_complete=False)
    problems = [Problem(code="BAD_INPUT", field=_place(name, names), message=why) for name, why in errors.items()]
    return Filled([_drawn(_marked(each, errors), texts) for each in read.field.fields], values, problems)


def sent_of(pairs: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]:
    """The names and texts of inputs among those of a form. Line ends are LF: browsers send CRLF."""
    return [
        (name, text.replace("\r\n", "\n"))
        for name, text in pairs
        if isinstance(text, str) and (name.startswith(PREFIX) or (name == MORE and text.startswith(PREFIX)))
    ]


def _json_texts(fields: Sequence[Field], sent: Sent) -> dict[str, str]:
    """What was written as JSON instead of in fields, by name of the list or object."""
    known = {each.name for each in fields if each.control in ("list", "object")}
    return {name: text for name, text in sent if name in known and text.strip()}


def _read(text: str, declared: Input) -> tuple[Any, str]:
    """The value of a JSON text, and why it is none."""
    try:
        value = json_value(text)
    except Unreadable as error:
        return None, str(error)
    return value, next(iter(errors_of({"type": declared.type}, value).values()), "")


def _is_in(name: str, field: str) -> bool:
    return name == field or name.startswith(f"{field}.")


def _drawn(each: Field, texts: Mapping[str, str]) -> InputField:
    if each.control == "radio" and not each.required:  # a boolean with a default: there is no third choice
        each = replace(each, options=tuple(option for option in each.options if option.value))
    return InputField(each, texts.get(each.name, "") if each.control in ("list", "object") else None)


def _marked(each: Field, errors: Mapping[str, str]) -> Field:
    """A field with the errors that count; those of fields that a JSON text replaces do not."""
    return replace(each, error=errors.get(each.name, ""), fields=tuple(_marked(one, errors) for one in each.fields))


def _place(name: str, names: Mapping[str, str]) -> str:
    """Where a field's value is, for the list of problems."""
    known = next((each for each in names if _is_in(name, each)), None)
    return "inputs" if known is None else f"inputs.{names[known]}{name[len(known) :]}"

"""HTML forms from JSON schemas: the fields that `_schema_fields.html` draws, and the value of what was posted.

    form = SchemaForm(schema, value)         of a question, of a tool's arguments, of `schema_of_inputs(plan.inputs)`
    form.field                               to draw, before anything was typed
    found = form.read(data.multi_items())    data: what the browser sent
    found.is_valid, found.value              else `found.field`, with what was typed and the errors, to draw again

Pure: no I/O, no HTML. Schemas and values come from models and other people: nothing raises, and what cannot be drawn is
a text area for JSON. Names of fields are safe in an HTML id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from plansurvive.client.forms.errors import NEEDED, errors_of
from plansurvive.client.forms.kinds import Choice, Schema
from plansurvive.client.forms.shapes import shape_of
from plansurvive.client.forms.texts import ABSENT, text_of
from plansurvive.client.forms.tree import MAX_ROWS, FieldPath, Maker, Node, Posted, Reading, is_untyped
from plansurvive.plans.definition.checks.validation import has_type
from plansurvive.plans.model.rules import Input
from plansurvive.plans.text.safe_text import exact, line, safe

MORE = "_more"
"""Name of the buttons that add a row to a list: what one of them sends is drawn again, never accepted."""
RADIOS = 7
"""More choices than this are a drop-down list."""
LONG = 80
"""Texts longer than this, or of several lines, get a text area."""
_TYPES = {"date": "date", "time": "time"}
_SHAPES = {"date": re.compile(r"\d{4}-\d\d-\d\d"), "time": re.compile(r"\d\d:\d\d")}
"""What such an input can show: anything else would be lost."""
_MODES = {"integer": "numeric", "number": "decimal"}
_FORMAT_MODES = {"email": "email", "uri": "url", "url": "url"}

Control = Literal["text", "area", "json", "radio", "select", "checks", "object", "list"]


@dataclass(frozen=True)
class Option:
    """One choice of a field."""

    value: str
    """What is sent; empty: not given."""
    label: str
    chosen: bool = False


@dataclass(frozen=True)
class Field:
    """One field, as `_schema_fields.html` draws it; every text in it is safe to show once it is escaped for HTML."""

    name: str
    label: str
    control: Control
    text: str = ""
    required: bool = False
    help: str = ""
    """What the author of the schema says about it."""
    hint: str = ""
    """What may be entered: its type, limits, and what an empty field means."""
    error: str = ""
    input_type: str = "text"
    input_mode: str = ""
    """The keyboard that a phone shows."""
    rows: int = 1
    options: tuple[Option, ...] = ()
    fields: tuple[Field, ...] = ()
    more: str = ""
    """For a list that has room: what the button for another row sends as MORE."""


@dataclass(frozen=True)
class Read:
    """What was posted."""

    value: Any
    """The value; ABSENT if there is none. Meaningful only if it is valid."""
    field: Field
    """The form with what was typed, and the errors at their fields."""
    errors: dict[str, str]
    """By name of the field; the whole form by the name of its first field."""
    is_complete: bool
    """False: a row was asked for; the form is to be drawn again."""

    @property
    def is_valid(self) -> bool:
        """Whether the value can be used."""
        return self.is_complete and not self.errors


class SchemaForm:
    """A form for one value."""

    def __init__(
        self, schema: Schema, value: Any = ABSENT, *, name: str = "f", title: str = "", fill: bool = True,
        references: bool = False, loose: bool = False,
    ) -> None:  # fmt: skip
        """`value`: what to fill in. `fill`: fill in defaults of the schema as well, else they are only told.

        `name`: of the fields, for two forms on one page. `references`: `$step` and `{{step}}` may stand for any value.
        `loose`: where nothing is known of a value, a text needs no quotes.
        """
        self._schema: Schema = schema if isinstance(schema, Mapping) else {}
        self._value, self._name, self._title, self._fill, self._references = value, name, title, fill, references
        self._loose = loose

    @property
    def field(self) -> Field:
        """The field for the whole value, with all that are in it."""
        return self._drawn(self._node(()), None, {})

    def read(self, sent: Iterable[tuple[str, Any]]) -> Read:
        """The value of what a browser sent, as (name, text) pairs; files and other names are ignored."""
        posted: dict[str, list[str]] = {}
        for name, text in sent:
            if isinstance(text, str) and (name in (self._name, MORE) or name.startswith(f"{self._name}.")):
                posted.setdefault(name, []).append(text)
        more = posted.pop(MORE, [""])[-1]
        node = self._node(posted, more)
        reading = Reading(posted, self._references, self._loose)
        value = reading.value(node)
        errors = dict(reading.refused)
        if value is ABSENT:
            errors |= {} if errors or not node.required else {node.name: NEEDED}
        else:
            for place, text in errors_of(self._schema, value, references=self._references).items():
                errors.setdefault(_nearest(reading.places, place), text)
        is_complete = not more
        return Read(value, self._drawn(node, reading, errors if is_complete else reading.refused), errors, is_complete)

    def _node(self, sent: Iterable[str], more: str = "") -> Node:
        maker = Maker(self._schema, set(sent), more, self._fill)
        return maker.node(self._schema, self._value, self._name, self._title, required=True)

    def _drawn(self, node: Node, reading: Reading | None, errors: Mapping[str, str]) -> Field:
        typed = reading.text(node) if reading else None
        text = node.text if typed is None else typed
        is_loose = self._loose and is_untyped(node)
        control = "area" if is_loose else _control(node, text)
        made = Field(
            name=node.name,
            label=line(str(node.schema.get("title") or node.title)),
            control=control,
            text=text,
            required=node.required,
            help=safe(str(node.schema.get("description") or "")),
            hint="a text, a number or JSON" if is_loose else _hint(node),
            error=safe(errors.get(node.name, "")),
            rows=min(20, max(3 if control == "json" else 1, text.count("\n") + 1)),
        )
        if control in ("text", "area"):
            given = str(node.schema.get("format", ""))
            mode = _FORMAT_MODES.get(given, "") if node.kind == "text" else _MODES.get(node.kind, "")
            is_shown = given in _TYPES and (not text or _SHAPES[given].fullmatch(text))
            return replace(made, input_type=_TYPES[given] if is_shown else "text", input_mode=mode)
        if control in ("radio", "select", "checks"):
            return replace(made, options=_options(node, reading.posted if reading else None, text))
        fields = tuple(self._drawn(each, reading, errors) for each in node.nodes)
        has_room = control == "list" and len(fields) < MAX_ROWS
        return replace(made, fields=fields, more=node.name if has_room else "")


def schema_of_inputs(inputs: Mapping[str, Input]) -> dict[str, Any]:
    """The JSON Schema of a plan's inputs: an input without a default is required.

    A plan says of a list or an object only that it is one: a default shows what is in it.
    """
    properties = {
        name: {
            **({"format": "multiline"} if each.type == "string" else {}),
            **({"items": {}} if each.type == "array" else {}),
            **(shape_of(each.default) if each.type in ("array", "object") and has_type(each.default, each) else {}),
            "type": each.type,
            **({"description": each.description} if each.description else {}),
            **({"default": each.default} if each.default is not None else {}),
        }
        for name, each in inputs.items()
    }
    required = [name for name, each in inputs.items() if each.default is None]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _control(node: Node, text: str) -> Control:
    match node.kind:
        case "choice":
            return "radio" if len(node.choices) <= RADIOS else "select"
        case "choices":
            return "checks"
        case "object" | "list" | "json":
            return node.kind
        case "text" if "\n" in text or len(text) > LONG or _is_long(node.schema):
            return "area"
    return "text"


def _is_long(schema: Schema) -> bool:
    limit = schema.get("maxLength")
    return schema.get("format") == "multiline" or (isinstance(limit, int) and limit > 4 * LONG)


def _options(node: Node, posted: Posted | None, text: str) -> tuple[Option, ...]:
    if node.kind == "choices":
        sent = set(node.chosen if posted is None else posted.get(node.name, ()))
        return tuple(Option(_sent(each), _label(each), _sent(each) in sent) for each in node.choices)
    found = [Option(_sent(each), _label(each), _sent(each) == text) for each in node.choices]
    if node.required and (node.choices or node.value is not ABSENT):
        return tuple(found) if len(found) <= RADIOS else (Option("", "choose one"), *found)
    return (*found, Option("", "not given", not text))


def _sent(choice: Choice) -> str:
    return text_of("choice", choice.value)


def _label(choice: Choice) -> str:
    """What a choice is called: the value itself, and what its author calls it."""
    if isinstance(choice.value, bool):
        return "yes" if choice.value else "no"
    own = exact(choice.value if isinstance(choice.value, str) else text_of("choice", choice.value))
    return f"{line(choice.title)} ({own})" if choice.title and choice.title != choice.value else own or '""'


def _hint(node: Node) -> str:
    """What may be entered, in a few words."""
    json_name = {"object": "a JSON object", "array": "a JSON list"}.get(str(node.schema.get("type")), "JSON")
    names = {"integer": "a whole number", "number": "a number", "json": json_name}
    schema, parts = node.schema, [names.get(node.kind, "")]
    parts += [words.format(schema[name]) for name, words in _LIMITS if isinstance(schema.get(name), int | float)]
    given = schema.get("format")
    parts += [f"format {line(given)[:40]}"] if isinstance(given, str) and given not in ("multiline", *_TYPES) else []
    pattern = schema.get("pattern")
    parts += [f"pattern {exact(pattern)[:200]}"] if isinstance(pattern, str) else []
    default = schema.get("default")
    if default is not None and default != node.value:
        shown = exact(default if isinstance(default, str) else text_of("choice", default))
        parts.append(f"{shown[:200]} if left empty")
    return ", ".join(part for part in parts if part)


_LIMITS = (
    ("minimum", "at least {}"), ("exclusiveMinimum", "more than {}"), ("maximum", "at most {}"),
    ("exclusiveMaximum", "below {}"), ("maxLength", "at most {:,} characters"), ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
)  # fmt: skip


def _nearest(places: Mapping[FieldPath, str], place: FieldPath) -> str:
    """The name of the field that shows the value at a place, or what it is in."""
    while place not in places and place:
        place = place[:-1]
    return places[place]

"""The fields of a form: a tree made from a JSON schema and a value, and the value that typed texts mean.

Pure. What nobody touched comes back unchanged, whatever it is. Fields, rows and depth are limited; what is beyond, or
cannot be drawn, is one field for JSON.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from plansurvive.client.forms.kinds import (
    Choice,
    FieldKind,
    Kind,
    Schema,
    is_one_of,
    kind_of,
    properties_of,
    required_of,
)
from plansurvive.client.forms.texts import (
    ABSENT,
    Unreadable,
    is_plain,
    is_reference,
    json_value,
    loose_value,
    number,
    text_of,
)

MAX_DEPTH = 4
MAX_FIELDS = 200
"""Fields made from one schema, rows of lists not counted."""
MAX_ROWS = 50
"""Rows of one list; a longer one is written as JSON."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,60}")
FieldPath = tuple[str | int, ...]
"""Where a value is in the whole: names of fields, indexes of items."""
Posted = Mapping[str, Sequence[str]]
"""Texts by name of the field, as a browser sends them."""


@dataclass(frozen=True)
class Node:
    """One field: the whole value, a field of an object, or an item of a list."""

    name: str
    """Unique in the form: letters, digits, `_`, `-`, `.` and `~`."""
    title: str
    kind: Kind | Literal["choices"]
    """`choices`: any number of the listed values."""
    schema: Schema
    required: bool = False
    nullable: bool = False
    value: Any = ABSENT
    """What it is filled in with."""
    choices: tuple[Choice, ...] = ()
    nodes: tuple[Node, ...] = ()
    keys: tuple[str | int, ...] = ()
    """By node in it, the name of the field or the index of the item."""
    label: str = ""
    """What may be entered, in words, for forms that have one line for it."""

    @property
    def text(self) -> str:
        """The value as text."""
        if self.value is None and self.nullable and self.kind in ("text", "integer", "number"):
            return ""
        return "" if self.kind in ("object", "list", "choices") else text_of(_kind(self.kind), self.value)

    @property
    def chosen(self) -> list[str]:
        """The values of `choices`, as texts."""
        return [text_of("choice", each) for each in self.value] if isinstance(self.value, list) else []

    def read(self, text: str, *, references: bool = False, loose: bool = False) -> Any:
        """The value that the text of a field means; ABSENT if it means none. Raises Unreadable.

        For fields of one text. `references`: numbers and JSON may be references to steps instead. `loose`: where
        nothing is known of a value, what does not look like JSON is a text.
        """
        typed = text.strip()
        # 1. What nobody touched comes back as it was, whatever it is.
        if text == self.text:
            return self.value
        # 2. A text is what was typed, blanks included. An empty one counts only where there has to be one.
        if self.kind == "text" and (text or (self.required and self.value is not ABSENT)):
            return text
        if not typed:
            return None if self.required and self.nullable else ABSENT
        # 3. A choice is its JSON text, as browsers send it, or for people the text itself.
        if self.kind == "choice":
            meant = [each.value for each in self.choices if text_of("choice", each.value) == typed]
            meant += [each.value for each in self.choices if each.value == typed]
            if not meant:
                raise Unreadable(f"{typed[:40]!r} is not one of the choices")
            return meant[0]
        if references and typed.startswith("$") and "\n" not in typed:
            return typed
        if self.kind in ("integer", "number"):
            return typed if references and is_reference(typed) else number(_kind(self.kind), typed)
        return loose_value(typed) if loose and is_untyped(self) else json_value(typed)


@dataclass
class Reading:
    """What was typed into a form, while it becomes a value."""

    posted: Posted
    references: bool = False
    """Numbers and JSON may be references to steps instead."""
    loose: bool = False
    """Where nothing is known of a value, what does not look like JSON is a text."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a text is not a value, by name of the field."""
    places: dict[FieldPath, str] = field(default_factory=dict)
    """Names of the fields by where their values are."""

    def value(self, node: Node, place: FieldPath = ()) -> Any:
        """The value of a field and of those in it; ABSENT if it is not given."""
        self.places[place] = node.name
        match node.kind:
            case "object":
                return self._object(node, place)
            case "list":
                return self._list(node, place)
            case "choices":
                return self._choices(node)
        text = self.text(node)
        if text is None:
            return node.value
        if text == node.text == "" and node.value is ABSENT and node.required and node.nullable:
            return None
        try:
            return node.read(text, references=self.references, loose=self.loose)
        except Unreadable as error:
            self.refused[node.name] = str(error)
            return ABSENT

    def text(self, node: Node) -> str | None:
        """What was typed into a field; None if it was not among what was sent."""
        found = self.posted.get(node.name)
        return found[-1].replace("\r\n", "\n") if found else None

    def is_touched(self, node: Node) -> bool:
        """Whether anything typed in a field, or one in it, differs from what it was filled in with."""
        if node.kind == "choices":
            return sorted(self.posted.get(node.name, ())) != sorted(node.chosen)
        if node.kind in ("object", "list"):
            return any(map(self.is_touched, node.nodes))
        return self.text(node) not in (None, node.text)

    def _object(self, node: Node, place: FieldPath) -> Any:
        found = {key: self.value(each, (*place, key)) for key, each in zip(node.keys, node.nodes, strict=True)}
        if not node.required and not isinstance(node.value, Mapping) and not self.is_touched(node):
            return node.value
        return {key: each for key, each in found.items() if each is not ABSENT}

    def _list(self, node: Node, place: FieldPath) -> Any:
        found: list[Any] = []
        for each in node.nodes:
            value = self.value(each, (*place, len(found)))
            if value is ABSENT and each.name not in self.refused:
                continue
            found.append(None if value is ABSENT else value)
        is_given = isinstance(node.value, list) or node.required or found
        return found if is_given else node.value

    def _choices(self, node: Node) -> Any:
        if not self.is_touched(node):
            return node.value if isinstance(node.value, list) or not node.required else []
        sent = set(self.posted.get(node.name, ()))
        found = [choice.value for choice in node.choices if text_of("choice", choice.value) in sent]
        if len(found) < len(sent):
            self.refused[node.name] = "one of the values is not one of the choices"
        return found if found or node.required or isinstance(node.value, list) else ABSENT


class Maker:
    """Makes the fields of one form."""

    def __init__(self, root: Schema, sent: Collection[str], more: str, fill: bool) -> None:
        """`sent`: names of fields that were sent, which tell how many rows there are; `more`: list to get another."""
        self._root, self._sent, self._more, self._fill = root, sent, more, fill
        self._count = count(1)

    def node(
        self, schema: Any, value: Any, name: str, title: str, *, required: bool, depth: int = 0, in_list: bool = False
    ) -> Node:
        """A field and those in it."""
        asked = kind_of(schema, self._root)
        if value is ABSENT and self._fill and asked.schema.get("default") is not None:
            value = asked.schema["default"]
        kind: Any = "json" if next(self._count) > MAX_FIELDS else _drawn(asked, value, depth, in_list)
        made = Node(name, title, kind, asked.schema, required, asked.nullable, value, asked.choices)
        if kind == "object":
            return self._with_fields(made, depth)
        return self._with_items(made, depth) if kind == "list" else made

    def _with_fields(self, made: Node, depth: int) -> Node:
        given = made.value if isinstance(made.value, Mapping) else {}
        known, needed = properties_of(made.schema), required_of(made.schema)
        nodes = [
            self.node(
                part,
                given.get(key, ABSENT),
                _inner(made.name, key, index),
                key,
                required=key in needed,
                depth=depth + 1,
            )
            for index, (key, part) in enumerate(known.items())
        ]
        others = [key for key in given if key not in known]
        nodes += [
            Node(_inner(made.name, key, len(known) + index), key, "json", {}, value=given[key])
            for index, key in enumerate(others)
        ]
        return _with(made, nodes, [*known, *others])

    def _with_items(self, made: Node, depth: int) -> Node:
        given = made.value if isinstance(made.value, list) else []
        item = kind_of(made.schema["items"], self._root)
        if item.kind == "choice" and made.schema.get("uniqueItems") is True and _are_choices(item.choices, given):
            return Node(
                made.name, made.title, "choices", made.schema, made.required, made.nullable, made.value, item.choices
            )
        start = f"{made.name}."
        sent = [name[len(start) :].partition(".")[0] for name in self._sent if name.startswith(start)]
        rows = max([len(given), *(int(each) + 1 for each in sent if each.isdecimal() and len(each) < 4)])
        rows = min(MAX_ROWS, max(rows, 1) + (made.name == self._more))
        nodes = [
            self.node(
                made.schema["items"], given[index] if index < len(given) else ABSENT, f"{start}{index}",
                f"{made.title} {index + 1}".strip(), required=False, depth=depth + 1, in_list=True,
            )
            for index in range(rows)
        ]  # fmt: skip
        return _with(made, nodes, list(range(rows)))


def is_untyped(node: Node) -> bool:
    """Whether nothing is known of a field's value."""
    return node.kind == "json" and not node.schema.keys() - {"title", "description", "default"}


def _drawn(asked: FieldKind, value: Any, depth: int, in_list: bool) -> Kind:
    """The kind of field that can show the value."""
    kind, blank = asked.kind, value is ABSENT or (value is None and asked.nullable)
    if kind in ("object", "list"):
        fits = blank or (isinstance(value, Mapping) if kind == "object" else _is_short(value))
        return kind if fits and depth < MAX_DEPTH and not (in_list and kind == "list") else "json"
    if kind == "choice":
        return "choice" if value is ABSENT or is_one_of(asked.choices, value) else "json"
    if blank:
        return kind
    if kind in ("integer", "number"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return kind if is_number or is_plain(value) else "json"
    return "text" if kind == "text" and is_plain(value) else "json"


def _is_short(value: Any) -> bool:
    return isinstance(value, list) and len(value) < MAX_ROWS


def _are_choices(choices: Sequence[Choice], value: list[Any]) -> bool:
    texts = [text_of("choice", each) for each in value]
    return all(is_one_of(choices, each) for each in value) and len(set(texts)) == len(texts)


def _inner(name: str, key: str, index: int) -> str:
    return f"{name}.{key if _NAME.fullmatch(key) else f'~{index}'}"


def _with(made: Node, nodes: list[Node], keys: list[Any]) -> Node:
    return Node(
        made.name, made.title, made.kind, made.schema, made.required, made.nullable, made.value, made.choices,
        tuple(nodes), tuple(keys),
    )  # fmt: skip


def _kind(kind: Any) -> Kind:
    found: Kind = kind
    return found

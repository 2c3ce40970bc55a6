"""The form of a question: its JSON Schema in the few words that elicitation has, and the answer that a reply means.

Pure. Elicitation knows flat objects of texts, numbers, booleans and choices (MCP 2026-07-28, client/elicitation). What
it cannot express is asked for as JSON text, with the schema beside the question. Whatever the client makes of the form,
the question itself checks the answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from client.forms.kinds import FieldKind, kind_of, properties_of, required_of
from client.forms.texts import Unreadable, json_value
from plans.views.safe_text import exact
from plans.waiting.questions import as_typed, has_default, misfit, schema_of

ANSWER = "answer"
"""Field of a question that asks for one value."""
MAX_FIELDS = 30
MAX_CHOICES = 100
MAX_TITLE = 500
_FORMATS = ("email", "uri", "date", "date-time")
"""Those that elicitation knows."""
_LIMITS: Mapping[str, Mapping[str, Any]] = MappingProxyType({
    "text": {"minLength": int, "maxLength": int},
    "integer": {"minimum": int, "maximum": int},
    "number": {"minimum": (int, float), "maximum": (int, float)},
})  # fmt: skip


@dataclass(frozen=True)
class AnswerForm:
    """The schema of a form, and how its reply is read."""

    schema: dict[str, Any]
    args: Mapping[str, Any]
    """The question."""
    is_json: bool = False
    """The answer is written as JSON text."""
    is_object: bool = False
    """The fields are those of the answer."""
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By field, the values that its choices stand for."""
    nullable: frozenset[str] = frozenset()
    """Fields that must be there and may be null: left empty, they are."""

    def value(self, content: Mapping[str, Any]) -> Any:
        """The answer that a reply means, whether or not it fits. Raises Unreadable.

        Fields that the form does not have are ignored.
        """
        if self.is_object:
            known = self.schema["properties"]
            given = {name: self._one(name, content[name]) for name in known if not _is_blank(content, name)}
            return given | {name: None for name in self.nullable if name not in given}
        if _is_blank(content, ANSWER):
            if has_default(self.args):
                return self.args["default"]
            raise Unreadable("the form has no answer")
        found = content[ANSWER]
        if self.is_json:
            return json_value(found) if isinstance(found, str) else found
        return self._one(ANSWER, found)

    def misfit(self, value: Any) -> str:
        """Why a value does not answer the question; empty if it does."""
        return misfit(self.args, value)

    def _one(self, name: str, found: Any) -> Any:
        meant = self.values.get(name)
        if meant is None:
            return found
        if isinstance(found, list):
            return [meant.get(each, each) if isinstance(each, str) else each for each in found]
        return meant.get(found, found) if isinstance(found, str) else found


def answer_form(args: Mapping[str, Any]) -> AnswerForm:
    """The form of a question."""
    schema = schema_of(args)
    kind = kind_of(schema)
    default = args.get("default") if has_default(args) else None
    if kind.kind == "object":
        given = default if isinstance(default, Mapping) else {}
        return _fields(args, kind, given) or _json(args)
    values: dict[str, Mapping[str, Any]] = {}
    drawn = _drawn(ANSWER, schema, schema, default, values)
    if drawn is None or kind.nullable:
        return _json(args)
    needed = [] if default is not None else [ANSWER]
    return AnswerForm(_object({ANSWER: {**drawn, "title": drawn.get("title", "Answer")}}, needed), args, values=values)


def _fields(args: Mapping[str, Any], kind: FieldKind, given: Mapping[str, Any]) -> AnswerForm | None:
    """The fields of an object; None if one of them is more than elicitation can express."""
    known, needed, values = properties_of(kind.schema), required_of(kind.schema), dict[str, Mapping[str, Any]]()
    if len(known) > MAX_FIELDS or not all(exact(name) == name and len(name) <= 100 for name in known):
        return None
    if not needed <= known.keys() or kind.nullable:
        return None
    found, nullable = dict[str, Any](), set[str]()
    for name, part in known.items():
        drawn = _drawn(name, part, schema_of(args), given.get(name), values)
        if drawn is None:
            return None
        found[name] = drawn
        nullable |= {name} if name in needed and kind_of(part, schema_of(args)).nullable else set()
    return AnswerForm(
        _object(found, sorted(needed - nullable)), args, is_object=True, values=values, nullable=frozenset(nullable)
    )


def _json(args: Mapping[str, Any]) -> AnswerForm:
    """A field for JSON text: the schema is shown with the question."""
    text = {"type": "string", "title": "Answer", "description": "The answer, as JSON", "minLength": 1}
    default = args.get("default") if has_default(args) else None
    text |= {"default": json.dumps(default, ensure_ascii=False)} if default is not None else {}
    return AnswerForm(_object({ANSWER: text}, [] if default is not None else [ANSWER]), args, is_json=True)


def _object(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _drawn(
    name: str, schema: Any, root: Mapping[str, Any], default: Any, values: dict[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    """One value in the words of elicitation; None if they do not suffice. `values`: takes what choices stand for."""
    kind = kind_of(schema, root)
    default = kind.schema.get("default") if default is None else default
    told = {key: exact(text)[:MAX_TITLE] for key in ("title", "description") if (text := _text(kind.schema, key))}
    match kind.kind:
        case "text" | "integer" | "number":
            return told | _plain(kind, default)
        case "choice":
            return _choice(name, kind, default, told, values)
        case "list":
            items = kind_of(kind.schema["items"], root)
            if items.kind != "choice" or kind.schema.get("uniqueItems") is not True:
                return None
            listed = _listed(name, items, values)
            return None if listed is None else told | {"type": "array", "items": {"anyOf": listed}}
    return None


def _plain(kind: FieldKind, default: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string" if kind.kind == "text" else kind.kind}
    for key, of in _LIMITS[kind.kind].items():
        limit = kind.schema.get(key)
        made |= {key: limit} if isinstance(limit, of) and not isinstance(limit, bool) else {}
    form = kind.schema.get("format")
    made |= {"format": form} if kind.kind == "text" and form in _FORMATS else {}
    wanted: Any = str if kind.kind == "text" else (int, float)
    fits = isinstance(default, wanted) and not isinstance(default, bool)
    return made | ({"default": default} if fits and (kind.kind != "text" or exact(default) == default) else {})


def _choice(
    name: str, kind: FieldKind, default: Any, told: dict[str, Any], values: dict[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    if [choice.value for choice in kind.choices] == [True, False] and kind.schema.get("type") == "boolean":
        return told | {"type": "boolean"} | ({"default": default} if isinstance(default, bool) else {})
    listed = _listed(name, kind, values)
    if listed is None:
        return None
    chosen = [text for text, value in values[name].items() if value == default and type(value) is type(default)]
    return told | {"type": "string", "oneOf": listed} | ({"default": chosen[0]} if chosen else {})


def _listed(name: str, kind: FieldKind, values: dict[str, Mapping[str, Any]]) -> list[dict[str, str]] | None:
    """The choices of a field as constants with titles; None if a text of one could be taken for another's."""
    meant = {as_typed(choice.value): choice.value for choice in kind.choices}
    if len(meant) < len(kind.choices) or len(meant) > MAX_CHOICES:
        return None
    titles = [choice.title or as_typed(choice.value) for choice in kind.choices]
    values[name] = meant
    return [{"const": text, "title": exact(title)[:MAX_TITLE]} for text, title in zip(meant, titles, strict=True)]


def _text(schema: Mapping[str, Any], key: str) -> str:
    found = schema.get(key)
    return found if isinstance(found, str) else ""


def _is_blank(content: Mapping[str, Any], name: str) -> bool:
    """Whether a field was left empty: clients send an empty text or null for it."""
    return content.get(name) in (None, "")

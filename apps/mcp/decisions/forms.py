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

from plansurvive.client.forms.kinds import required_of
from plansurvive.client.forms.texts import ABSENT, Unreadable, json_value
from plansurvive.client.forms.tree import Maker, Node
from plansurvive.plans.definition.questions import as_typed, has_default, misfit, schema_of
from plansurvive.plans.text.safe_text import exact

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
    # Empty: a default that a field cannot show makes no other field of it, it is only left out.
    node = Maker(schema, (), "", fill=False).node(schema, ABSENT, ANSWER, "", required=True)
    default = args.get("default") if has_default(args) else None
    if node.kind == "object":
        given = default if isinstance(default, Mapping) else {}
        return _fields(args, node, given) or _json(args)
    values: dict[str, Mapping[str, Any]] = {}
    drawn = _drawn(ANSWER, node, default, values)
    if drawn is None or node.nullable:
        return _json(args)
    needed = [] if default is not None else [ANSWER]
    return AnswerForm(_object({ANSWER: {**drawn, "title": drawn.get("title", "Answer")}}, needed), args, values=values)


def _fields(args: Mapping[str, Any], node: Node, given: Mapping[str, Any]) -> AnswerForm | None:
    """The fields of an object; None if one of them is more than elicitation can express."""
    known = {str(key): each for key, each in zip(node.keys, node.nodes, strict=True)}
    needed, values = required_of(node.schema), dict[str, Mapping[str, Any]]()
    if len(known) > MAX_FIELDS or not all(exact(name) == name and len(name) <= 100 for name in known):
        return None
    if not needed <= known.keys() or node.nullable:
        return None
    found = dict[str, Any]()
    for name, each in known.items():
        drawn = _drawn(name, each, given.get(name), values)
        if drawn is None:
            return None
        found[name] = drawn
    nullable = frozenset(name for name in needed if known[name].nullable)
    return AnswerForm(_object(found, sorted(needed - nullable)), args, is_object=True, values=values, nullable=nullable)


def _json(args: Mapping[str, Any]) -> AnswerForm:
    """A field for JSON text: the schema is shown with the question."""
    text = {"type": "string", "title": "Answer", "description": "The answer, as JSON", "minLength": 1}
    default = args.get("default") if has_default(args) else None
    text |= {"default": json.dumps(default, ensure_ascii=False)} if default is not None else {}
    return AnswerForm(_object({ANSWER: text}, [] if default is not None else [ANSWER]), args, is_json=True)


def _object(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _drawn(name: str, node: Node, default: Any, values: dict[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """One value in the words of elicitation; None if they do not suffice. `values`: takes what choices stand for."""
    default = node.schema.get("default") if default is None else default
    told = {key: exact(text)[:MAX_TITLE] for key in ("title", "description") if (text := _text(node.schema, key))}
    match node.kind:
        case "text" | "integer" | "number":
            return told | _plain(node, default)
        case "choice":
            return _choice(name, node, default, told, values)
        case "choices":
            listed = _listed(name, node, values)
            return None if listed is None else told | {"type": "array", "items": {"anyOf": listed}}
    return None


def _plain(node: Node, default: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string" if node.kind == "text" else node.kind}
    for key, of in _LIMITS[node.kind].items():
        limit = node.schema.get(key)
        made |= {key: limit} if isinstance(limit, of) and not isinstance(limit, bool) else {}
    form = node.schema.get("format")
    made |= {"format": form} if node.kind == "text" and form in _FORMATS else {}
    wanted: Any = str if node.kind == "text" else (int, float)
    fits = isinstance(default, wanted) and not isinstance(default, bool)
    return made | ({"default": default} if fits and (node.kind != "text" or exact(default) == default) else {})


def _choice(
    name: str, node: Node, default: Any, told: dict[str, Any], values: dict[str, Mapping[str, Any]]
) -> dict[str, Any] | None:
    if [choice.value for choice in node.choices] == [True, False] and node.schema.get("type") == "boolean":
        return told | {"type": "boolean"} | ({"default": default} if isinstance(default, bool) else {})
    listed = _listed(name, node, values)
    if listed is None:
        return None
    chosen = [text for text, value in values[name].items() if value == default and type(value) is type(default)]
    return told | {"type": "string", "oneOf": listed} | ({"default": chosen[0]} if chosen else {})


def _listed(name: str, node: Node, values: dict[str, Mapping[str, Any]]) -> list[dict[str, str]] | None:
    """The choices of a field as constants with titles; None if a text of one could be taken for another's."""
    meant = {as_typed(choice.value): choice.value for choice in node.choices}
    if len(meant) < len(node.choices) or len(meant) > MAX_CHOICES:
        return None
    titles = [choice.title or as_typed(choice.value) for choice in node.choices]
    values[name] = meant
    return [{"const": text, "title": exact(title)[:MAX_TITLE]} for text, title in zip(meant, titles, strict=True)]


def _text(schema: Mapping[str, Any], key: str) -> str:
    found = schema.get(key)
    return found if isinstance(found, str) else ""


def _is_blank(content: Mapping[str, Any], name: str) -> bool:
    """Whether a field was left empty: clients send an empty text or null for it."""
    return content.get(name) in (None, "")

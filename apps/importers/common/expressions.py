"""Expressions of foreign languages, in one form, and that form as JMESPath or as a reference in a text.

Each foreign language has a parser of its own (`github_actions/conditions.py`, `serverless/jq.py`) that makes these
nodes. What has no counterpart here raises NotCarried, and the importer reports it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plansurvive.plans.expressions.references import literal

MAX_EXPRESSION = 1_000
"""Characters of an expression in a plan."""


class NotCarried(Exception):
    """An expression, or a part of a document, that a plan cannot express. The message continues "...: "."""


@dataclass(frozen=True)
class Const:
    """A value that is known when the document is imported."""

    value: Any


@dataclass(frozen=True)
class Path:
    """A part of a step's value, of the inputs, or of a variable of a loop."""

    root: str
    parts: tuple[str | int | None, ...] = ()
    """Names and indexes; None is every element of a list."""

    def at(self, *parts: str | int | None) -> Path:
        """A part of this part."""
        return Path(self.root, (*self.parts, *parts))


@dataclass(frozen=True)
class Op:
    """An operator of JMESPath, or `!` with one operand."""

    name: str
    operands: tuple[Node, ...]


@dataclass(frozen=True)
class Call:
    """A function of JMESPath."""

    name: str
    args: tuple[Node, ...]


@dataclass(frozen=True)
class Made:
    """An object whose fields are given by expressions."""

    fields: Mapping[str, Node]


@dataclass(frozen=True)
class Listed:
    """A list whose elements are given by expressions."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Text:
    """Texts and expressions one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Unknown:
    """A value that a plan does not have, with the reason: reported where it is used."""

    why: str


Node = Const | Path | Op | Call | Made | Listed | Text | Unknown


def jmespath_of(node: Node, *, rooted: bool = True) -> str:
    """An expression as JMESPath. `rooted` False: paths without their root, as its value is what is searched.

    Raises NotCarried if there is no such expression, or it is longer than a plan allows.
    """
    text = _jmespath(node, rooted)
    if len(text) > MAX_EXPRESSION:
        raise NotCarried(f"an expression of {len(text)} characters, {MAX_EXPRESSION} are allowed")
    return text


def value_of(node: Node) -> Any:
    """An expression as a value in the arguments of a step: references for what is not known yet. Raises NotCarried."""
    if isinstance(node, Const):
        return _escaped(node.value)
    if isinstance(node, Made):
        return {name: value_of(each) for name, each in node.fields.items()}
    if isinstance(node, Listed):
        return [value_of(each) for each in node.items]
    if isinstance(node, Text):
        return text_of(node)
    if isinstance(node, Path):
        return f"${_reference(node)}"
    return f"${_only_root(node)}.[{jmespath_of(node, rooted=False)}] | [0]"  # an expression over the value as a whole


def text_of(node: Node) -> str:
    """An expression as a text in the arguments of a step. Raises NotCarried."""
    parts = node.parts if isinstance(node, Text) else (node,)
    found = "".join(_inserted(part) for part in parts)
    first = next((part for part in parts if not (isinstance(part, Const) and part.value == "")), None)
    return f"${found}" if isinstance(first, Const) and found.startswith("$") else found


def joined(*nodes: Node) -> Text:
    """Texts and expressions one after the other, as one text."""
    return Text(
        tuple(part for node in nodes for part in (joined(*node.parts).parts if isinstance(node, Text) else (node,)))
    )


def selected(node: Node, *parts: str | int | None) -> Node:
    """A part of what a node stands for. Raises NotCarried if it has none."""
    for part in parts:
        if isinstance(node, Path):
            node = node.at(part)
        elif isinstance(node, Made) and isinstance(part, str):
            node = node.fields.get(part, Const(None))
        elif isinstance(node, Listed) and isinstance(part, int) and -len(node.items) <= part < len(node.items):
            node = node.items[part]
        elif isinstance(node, Const):
            node = Const(_item(node.value, part))
        elif isinstance(node, Unknown):
            raise NotCarried(node.why)
        elif isinstance(node, Call) and node.name == "merge":
            first, second = node.args
            has = isinstance(second, Made) and part in second.fields
            node = selected(second if has else first, part)
        else:
            raise NotCarried("a part of a value that a step computes")
    return node


def shown(value: Any) -> str:
    """A constant inserted into a text: strings as they are, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def roots_of(node: Node) -> Iterator[str]:
    """The roots of an expression's paths."""
    if isinstance(node, Path):
        yield node.root
    for each in _inside(node):
        yield from roots_of(each)


def _inside(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Op):
        return node.operands
    if isinstance(node, Call):
        return node.args
    if isinstance(node, Made):
        return tuple(node.fields.values())
    return node.items if isinstance(node, Listed) else node.parts if isinstance(node, Text) else ()


def require_known(node: Node) -> None:
    """Raise NotCarried if a value that a plan does not have is anywhere in an expression."""
    if isinstance(node, Unknown):
        raise NotCarried(node.why)
    for each in _inside(node):
        require_known(each)


def _jmespath(node: Node, rooted: bool) -> str:
    if isinstance(node, Const):
        return _constant(node.value)
    if isinstance(node, Path):
        return _path(node, rooted)
    if isinstance(node, Op) and len(node.operands) == 1:
        return f"{node.name}{_operand(node.operands[0], rooted)}"
    if isinstance(node, Op):
        return f" {node.name} ".join(_operand(each, rooted) for each in node.operands)
    if isinstance(node, Call):
        return f"{node.name}({', '.join(_jmespath(each, rooted) for each in node.args)})"
    if isinstance(node, Made):
        if not node.fields:
            return "`{}`"
        return "{" + ", ".join(f"{_name(name)}: {_jmespath(each, rooted)}" for name, each in node.fields.items()) + "}"
    if isinstance(node, Listed):
        return "[" + ", ".join(_jmespath(each, rooted) for each in node.items) + "]" if node.items else "`[]`"
    if isinstance(node, Unknown):
        raise NotCarried(node.why)
    texts = [each if isinstance(each, Const) else Call("to_string", (each,)) for each in node.parts]
    parts = [Const(shown(each.value)) if isinstance(each, Const) else each for each in texts]
    return f"join('', [{', '.join(_jmespath(each, rooted) for each in parts)}])"


def _operand(node: Node, rooted: bool) -> str:
    text = _jmespath(node, rooted)
    return f"({text})" if isinstance(node, Op) and len(node.operands) > 1 else text


def _path(path: Path, rooted: bool) -> str:
    text = _name(path.root) if rooted and path.root != "@" else ""  # `@` is what is searched
    for part in path.parts:
        if part is None:
            text += "[*]"
        elif isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{_name(part)}" if text else _name(part)
    return text or "@"


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else json.dumps(name, ensure_ascii=False)


def _constant(value: Any) -> str:
    if isinstance(value, str) and "'" not in value and "\\" not in value:
        return f"'{value}'"
    return "`" + json.dumps(value, ensure_ascii=False).replace("`", "\\`") + "`"


def _inserted(node: Node) -> str:
    if isinstance(node, Const):
        return literal(f"x{shown(node.value)}")[1:]  # a dollar sign counts only where the whole text begins
    reference = _reference(node)
    return "{{" + reference + (" }}" if reference.endswith("}") else "}}")


def _reference(node: Node) -> str:
    """What stands in `{{...}}`, or after a dollar sign: a root, and what is selected from its value."""
    if isinstance(node, Path):
        rest = _path(node, rooted=False)
        whole = node.root if rest == "@" else f"{node.root}{'' if rest.startswith('[') else '.'}{rest}"
    else:
        whole = f"{_only_root(node)} | {jmespath_of(node, rooted=False)}"
    if "{{" in whole or "}}" in whole or len(whole) > MAX_EXPRESSION:
        raise NotCarried("it cannot stand in a reference")
    return whole


def _only_root(node: Node) -> str:
    require_known(node)
    roots = set(roots_of(node))
    if len(roots) != 1:
        raise NotCarried("it combines the values of several steps, or none, in one reference")
    return roots.pop()


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, dict):
        return {name: _escaped(each) for name, each in value.items()}
    return [_escaped(each) for each in value] if isinstance(value, list) else value


def _item(value: Any, part: str | int | None) -> Any:
    try:
        if isinstance(value, dict) and isinstance(part, str):
            return value[part]
        return value[part] if isinstance(value, list) and isinstance(part, int) else None
    except (KeyError, IndexError):
        return None

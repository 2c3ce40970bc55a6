"""The part of jq that workflows use for paths and conditions, evaluated on what is known when a plan is written.

    https://jqlang.org/manual/, https://github.com/serverlessworkflow/specification/blob/main/dsl.md#runtime-expressions

Paths, `$variables`, literals, objects, lists, comparisons, `and`, `or`, `not`, `//`, `|`, interpolated strings
and a few functions. Everything else (`select`, `reduce`, `if`, `def`, ...) raises NotCarried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from client.importers.expressions import Call, Const, Listed, Made, Node, NotCarried, Op, Path, Text, joined, selected

MAX_CHARACTERS = 10_000
MAX_TOKENS = 300
MAX_DEPTH = 20
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<field>\.[A-Za-z_]\w*)"
    r"|(?P<variable>\$[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<mark>//|==|!=|<=|>=|[|<>.()\[\]{},:+*/?-]))",
    re.DOTALL,
)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_PLAIN = {"length": "length", "keys": "keys", "tostring": "to_string", "tonumber": "to_number", "type": "type",
          "sort": "sort", "reverse": "reverse", "min": "min", "max": "max", "values": "values"}  # fmt: skip
_WITH_TEXT = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}


@dataclass(frozen=True)
class Data:
    """What an expression is evaluated on: `.`, and the variables by name without the dollar sign."""

    dot: Node
    variables: Mapping[str, Node]


def evaluated(text: str, data: Data) -> Node:
    """The value of an expression. Raises NotCarried."""
    parser = _Parser(_tokens(text), data, data.dot)
    node = parser.pipe(0)
    if parser.at < len(parser.tokens):
        raise NotCarried(f"the expression {text.strip()[:200]!r}")
    return node


def embedded(text: str) -> str | None:
    """The expression in `${ ... }`; None if the text is no such thing."""
    found = text.strip()
    return found[2:-1].strip() if found.startswith("${") and found.endswith("}") else None


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > MAX_CHARACTERS:
        raise NotCarried(f"an expression of {len(text)} characters")
    found: list[tuple[str, str]] = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match or match.end() == at or len(found) > MAX_TOKENS:
            raise NotCarried(f"the expression {text[:200]!r}")
        found.append((str(match.lastgroup), match[match.lastgroup or 0]))
        at = match.end()
    return found


@dataclass
class _Parser:
    tokens: list[tuple[str, str]]
    data: Data
    dot: Node
    at: int = 0

    def pipe(self, depth: int) -> Node:
        """`a | b`: what follows is evaluated on what comes before."""
        if depth > MAX_DEPTH:
            raise NotCarried(f"an expression nested deeper than {MAX_DEPTH}")
        before = self.dot
        node = self._otherwise(depth)
        while self._is("|"):
            self._take()
            self.dot = node
            node = self._otherwise(depth)
        self.dot = before
        return node

    def _otherwise(self, depth: int) -> Node:
        node = self._or(depth)
        while self._is("//"):
            self._take()
            node = Op("||", (node, self._or(depth)))
        return node

    def _or(self, depth: int) -> Node:
        node = self._and(depth)
        while self._peek() == ("name", "or"):
            self._take()
            node = Op("||", (node, self._and(depth)))
        return node

    def _and(self, depth: int) -> Node:
        node = self._compared(depth)
        while self._peek() == ("name", "and"):
            self._take()
            node = Op("&&", (node, self._compared(depth)))
        return node

    def _compared(self, depth: int) -> Node:
        node = self._sum(depth)
        if self._peek()[1] in _COMPARISONS and self._peek()[0] == "mark":
            mark = self._take()
            node = Op(mark, (node, self._sum(depth)))
        return node

    def _sum(self, depth: int) -> Node:
        node = self._postfix(depth)
        while self._is("+"):
            self._take()
            node = _added(node, self._postfix(depth))
        return node

    def _postfix(self, depth: int) -> Node:
        node = self._primary(depth)
        while True:
            kind, text = self._peek()
            if kind == "field":
                self._take()
                node = selected(node, text[1:])
            elif text == "." and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][0] == "text":
                self._take()
                node = selected(node, _plain_text(self._take()))
            elif kind == "mark" and text == "[":
                self._take()
                node = self._indexed(node, depth)
            elif kind == "mark" and text == "?":
                self._take()
            else:
                return node

    def _indexed(self, node: Node, depth: int) -> Node:
        if self._is("]"):
            self._take()
            return selected(node, None)
        negative = self._is("-")
        if negative:
            self._take()
        index = self.pipe(depth + 1)
        self._expect("]")
        if not isinstance(index, Const) or not isinstance(index.value, str | int) or isinstance(index.value, bool):
            raise NotCarried("an index that is computed")
        return selected(node, -index.value if negative and isinstance(index.value, int) else index.value)

    def _primary(self, depth: int) -> Node:
        kind, text = self._peek()
        if kind == "field":
            return self.dot  # `_postfix` takes the field
        self._take()
        if kind == "number":
            return Const(json.loads(text))
        if kind == "text":
            return self._interpolated(text, depth)
        if kind == "variable":
            if text[1:] not in self.data.variables:
                raise NotCarried(f"the variable {text}")
            return self.data.variables[text[1:]]
        if kind == "name":
            return self._named(text, depth)
        if text == "-" and self._peek()[0] == "number":
            return Const(-json.loads(self._take()))
        if text == ".":
            return selected(self.dot, _plain_text(self._take())) if self._peek()[0] == "text" else self.dot
        if text == "(":
            node = self.pipe(depth + 1)
            self._expect(")")
            return node
        if text == "[":
            return self._list(depth)
        if text == "{":
            return self._object(depth)
        raise NotCarried("an expression that cannot be read")

    def _list(self, depth: int) -> Node:
        items: list[Node] = []
        while not self._is("]"):
            items.append(self.pipe(depth + 1))
            if not self._is("]"):
                self._expect(",")
        self._take()
        if len(items) == 1 and isinstance(items[0], Path) and None in items[0].parts:
            return items[0]  # `[.[] | .x]`: a list already
        return Listed(tuple(items))

    def _object(self, depth: int) -> Node:
        fields: dict[str, Node] = {}
        while not self._is("}"):
            kind, text = self._peek()
            self._take()
            if kind not in ("name", "text", "variable"):
                raise NotCarried("an object with a name that is computed")
            name = _plain_text(text) if kind == "text" else text.removeprefix("$")
            if self._is(":"):
                self._take()
                fields[name] = self._otherwise(depth + 1)
            elif kind == "variable" and name in self.data.variables:
                fields[name] = self.data.variables[name]
            else:
                fields[name] = selected(self.dot, name)
            if not self._is("}"):
                self._expect(",")
        self._take()
        return Made(fields)

    def _named(self, name: str, depth: int) -> Node:
        if name in ("true", "false", "null"):
            return Const({"true": True, "false": False, "null": None}[name])
        if name == "not":
            return Op("!", (self.dot,))
        if name in _PLAIN and not self._is("("):
            return Call(_PLAIN[name], (self.dot,))
        if name in ("first", "last") and not self._is("("):
            return selected(self.dot, 0 if name == "first" else -1)
        if name in (*_WITH_TEXT, "join", "has", "map") and self._is("("):
            self._take()
            before = self.dot
            self.dot = selected(before, None) if name == "map" else before
            arg = self.pipe(depth + 1)
            self._expect(")")
            self.dot = before
            return _applied(name, before, arg)
        raise NotCarried(f"{name} of jq")

    def _interpolated(self, text: str, depth: int) -> Node:
        r"""A string, with `\(expression)` in it."""
        parts: list[Node] = []
        rest = text[1:-1]
        while (start := _interpolation(rest)) >= 0:
            end = _closing(rest, start + 2)
            parts += [Const(_plain_text(f'"{rest[:start]}"'))] if start else []
            inner = _Parser(_tokens(rest[start + 2 : end].replace('\\"', '"')), self.data, self.dot)
            parts.append(inner.pipe(depth + 1))
            rest = rest[end + 1 :]
        parts += [Const(_plain_text(f'"{rest}"'))] if rest or not parts else []
        return parts[0] if len(parts) == 1 and isinstance(parts[0], Const) else Text(tuple(parts))

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _is(self, mark: str) -> bool:
        return self._peek() == ("mark", mark)

    def _take(self) -> str:
        if self.at >= len(self.tokens):
            raise NotCarried("an expression that ends too early")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def _expect(self, mark: str) -> None:
        if self._take() != mark:
            raise NotCarried(f"an expression without {mark!r} in its place")


def _added(left: Node, right: Node) -> Node:
    if isinstance(left, Made) and isinstance(right, Made):
        return Made({**left.fields, **right.fields})
    if isinstance(right, Made) and isinstance(left, Path | Call):
        return Call("merge", (left, right))
    if isinstance(left, Listed) and isinstance(right, Listed):
        return Listed((*left.items, *right.items))
    texts = [isinstance(each, Text) or (isinstance(each, Const) and isinstance(each.value, str))
             for each in (left, right)]  # fmt: skip
    if any(texts):
        return joined(left, right)
    raise NotCarried("values added to each other")


def _applied(name: str, dot: Node, arg: Node) -> Node:
    if name == "map":
        if isinstance(arg, Path):
            return arg
        raise NotCarried("map() of more than a path")
    if name == "has" and isinstance(arg, Const):
        return Op("!=", (selected(dot, arg.value), Const(None)))
    if name == "join":
        return Call("join", (arg, dot))
    return Call(_WITH_TEXT[name], (dot, arg))


def _plain_text(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        raise NotCarried("a text that cannot be read") from None


def _interpolation(text: str) -> int:
    r"""Where the first `\(` is that no backslash precedes; -1: nowhere."""
    found = re.match(r"(?:[^\\]|\\[^(])*?(?=\\\()", text, re.DOTALL)
    return found.end() if found else -1


def _closing(text: str, at: int) -> int:
    depth = 1
    for index in range(at, len(text)):
        depth += (text[index] == "(") - (text[index] == ")")
        if not depth:
            return index
    raise NotCarried("a text with an expression that has no end")

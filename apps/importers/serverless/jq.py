"""The part of jq that workflows use for paths and conditions, evaluated on what is known when a plan is written.

    https://jqlang.org/manual/, https://github.com/serverlessworkflow/specification/blob/main/dsl.md#runtime-expressions

Paths, `$variables`, literals, objects, lists, comparisons, `and`, `or`, `not`, `//`, `|`, interpolated strings
and a few functions. Everything else (`select`, `reduce`, `if`, `def`, ...) raises NotCarried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from plansurvive.apps.importers.common.expressions import (
    Call,
    Const,
    Listed,
    Made,
    Node,
    NotCarried,
    Op,
    Path,
    Text,
    selected,
)
from plansurvive.apps.importers.serverless.jq_parts import (
    WITH_TEXT,
    added,
    applied,
    closing,
    interpolation,
    plain_text,
    tokens_of,
)

MAX_DEPTH = 20
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_PLAIN = {"length": "length", "keys": "keys", "tostring": "to_string", "tonumber": "to_number", "type": "type",
          "sort": "sort", "reverse": "reverse", "min": "min", "max": "max", "values": "values"}  # fmt: skip


@dataclass(frozen=True)
class Data:
    """What an expression is evaluated on: `.`, and the variables by name without the dollar sign."""

    dot: Node
    variables: Mapping[str, Node]


def evaluated(text: str, data: Data) -> Node:
    """The value of an expression. Raises NotCarried."""
    parser = _Parser(tokens_of(text), data, data.dot)
    node = parser.pipe(0)
    if parser.at < len(parser.tokens):
        raise NotCarried(f"the expression {text.strip()[:200]!r}")
    return node


def embedded(text: str) -> str | None:
    """The expression in `${ ... }`; None if the text is no such thing."""
    found = text.strip()
    return found[2:-1].strip() if found.startswith("${") and found.endswith("}") else None


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
            node = added(node, self._postfix(depth))
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
                node = selected(node, plain_text(self._take()))
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
            return selected(self.dot, plain_text(self._take())) if self._peek()[0] == "text" else self.dot
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
            name = plain_text(text) if kind == "text" else text.removeprefix("$")
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
        if name in (*WITH_TEXT, "join", "has", "map") and self._is("("):
            self._take()
            before = self.dot
            self.dot = selected(before, None) if name == "map" else before
            arg = self.pipe(depth + 1)
            self._expect(")")
            self.dot = before
            return applied(name, before, arg)
        raise NotCarried(f"{name} of jq")

    def _interpolated(self, text: str, depth: int) -> Node:
        r"""A string, with `\(expression)` in it."""
        parts: list[Node] = []
        rest = text[1:-1]
        while (start := interpolation(rest)) >= 0:
            end = closing(rest, start + 2)
            parts += [Const(plain_text(f'"{rest[:start]}"'))] if start else []
            inner = _Parser(tokens_of(rest[start + 2 : end].replace('\\"', '"')), self.data, self.dot)
            parts.append(inner.pipe(depth + 1))
            rest = rest[end + 1 :]
        parts += [Const(plain_text(f'"{rest}"'))] if rest or not parts else []
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

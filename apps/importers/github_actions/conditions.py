"""The expression language of GitHub Actions: `${{ ... }}`, and conditions, which need no marks.

    https://docs.github.com/en/actions/reference/workflows-and-actions/expressions

A recursive parser of bounded depth. Contexts become nodes through a function that is passed in. The status functions
(`success()`, `always()`, ...) are no values: they are collected, and the importer places the step accordingly.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from plansurvive.apps.importers.common.expressions import Call, Const, Node, NotCarried, Op, joined

MAX_DEPTH = 30
MAX_TOKENS = 300
"""In one expression; what is made of them is nested as deep as there are operators."""
MAX_CHARACTERS = 20_000
STATUS = ("success", "always", "failure", "cancelled")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>-?(?:0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<mark>\|\||&&|==|!=|<=|>=|[!<>()\[\].,*]))"
)
_EMBEDDED = re.compile(r"\$\{\{((?:[^'}]|'(?:[^']|'')*'|\}(?!\}))*)\}\}")
_LEVELS = (("||",), ("&&",), ("==", "!="), ("<", "<=", ">", ">="))
_FUNCTIONS = {"contains": "contains", "startswith": "starts_with", "endswith": "ends_with", "tojson": "to_string"}

Context = Callable[[tuple[str, ...]], Node]
"""What a context such as ("needs", "build", "outputs", "tag") means. Raises NotCarried."""


def texts_in(text: str, context: Context, problem: Callable[[str], None]) -> Node:
    """A text with `${{ ... }}` in it. What cannot be carried over stays as it is; `problem` gets the reason."""
    parts: list[Node] = []
    end = 0
    while (start := text.find("${{", end)) >= 0:
        found = _EMBEDDED.match(text, start)
        if not found:  # searched for once only: a text may have a hundred thousand beginnings and no end
            problem("an expression that has no end")
            break
        parts += [Const(text[end:start])] if start > end else []
        try:
            parts.append(parsed(found[1], context).node)
        except NotCarried as error:
            problem(str(error))
            parts.append(Const(found[0]))
        end = found.end()
    parts += [Const(text[end:])] if end < len(text) or not parts else []
    return parts[0] if len(parts) == 1 else joined(*parts)


@dataclass
class Condition:
    """A parsed expression, and the status functions that it calls."""

    node: Node
    status: set[str]


def condition(text: str, context: Context) -> Condition:
    """The condition of an `if`, with or without `${{ }}`. Raises NotCarried."""
    whole = _EMBEDDED.fullmatch(text.strip()) if len(text) <= MAX_CHARACTERS else None
    inner = re.sub(r"!\s*cancelled\(\)", "always()", whole[1] if whole else text)
    found = parsed(re.sub(r"!\s*failure\(\)", "success()", inner), context)
    if found.status - {"success"} and "||" in inner:
        raise NotCarried("a status function beside ||")
    return found


def parsed(text: str, context: Context) -> Condition:
    """One expression. Status functions count as true: whoever calls decides what they mean. Raises NotCarried."""
    parser = _Parser(_tokens(text), context)
    node = parser.level(0, 0)
    if parser.at < len(parser.tokens):
        raise NotCarried(f"the expression {text.strip()[:200]!r} cannot be read")
    return Condition(_simplified(node), parser.status)


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > MAX_CHARACTERS:
        raise NotCarried(f"an expression of {len(text)} characters")
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match or match.end() == at:
            raise NotCarried(f"the expression {text[:200]!r} cannot be read")
        found.append((str(match.lastgroup), match[match.lastgroup or 0]))
        if len(found) > MAX_TOKENS:
            raise NotCarried(f"an expression of more than {MAX_TOKENS} parts")
        at = match.end()
    return found


@dataclass
class _Parser:
    tokens: list[tuple[str, str]]
    context: Context
    at: int = 0
    status: set[str] = field(default_factory=set)

    def level(self, number: int, depth: int) -> Node:
        """The operators of a level of precedence, loosest first."""
        if depth > MAX_DEPTH:
            raise NotCarried(f"an expression nested deeper than {MAX_DEPTH}")
        if number == len(_LEVELS):
            return self._unary(depth)
        node = self.level(number + 1, depth)
        while self._next() in _LEVELS[number]:
            mark = self._take()
            node = Op(mark, (node, self.level(number + 1, depth)))
        return node

    def _unary(self, depth: int) -> Node:
        if self._next() == "!":
            self._take()
            if depth > MAX_DEPTH:
                raise NotCarried(f"an expression nested deeper than {MAX_DEPTH}")
            return Op("!", (self._unary(depth + 1),))
        return self._primary(depth)

    def _primary(self, depth: int) -> Node:
        kind, text = self._peek()
        if kind == "number":
            self._take()
            return Const(int(text, 16) if "0x" in text else float(text) if re.search(r"[.eE]", text) else int(text))
        if kind == "text":
            self._take()
            return Const(text[1:-1].replace("''", "'"))
        if text == "(":
            self._take()
            node = self.level(0, depth + 1)
            self._expect(")")
            return node
        if kind == "name":
            return self._named(depth)
        raise NotCarried("an expression that cannot be read")

    def _named(self, depth: int) -> Node:
        name = self._take()
        if name in ("true", "false", "null"):
            return Const({"true": True, "false": False, "null": None}[name])
        if self._next() == "(":
            return self._function(name.lower(), depth)
        parts = [name]
        while self._next() in (".", "["):
            if self._take() == ".":
                kind, part = self._peek()
                if kind != "name":
                    raise NotCarried(f"{name}.{part} selects from every element")
                parts.append(self._take())
            else:
                inner = self.level(0, depth + 1)
                self._expect("]")
                if not isinstance(inner, Const):
                    raise NotCarried(f"{name}[...] with a name that is computed")
                parts.append(str(inner.value))
        return self.context(tuple(parts))

    def _function(self, name: str, depth: int) -> Node:
        self._expect("(")
        args: list[Node] = []
        while self._next() != ")":
            args.append(self.level(0, depth + 1))
            if self._next() == ",":
                self._take()
        self._expect(")")
        if name in STATUS and not args:
            self.status.add(name)
            return Const(True)
        if name in _FUNCTIONS and len(args) == (1 if name == "tojson" else 2):
            return Call(_FUNCTIONS[name], tuple(args))
        if name == "join" and args:
            return Call("join", (args[1] if len(args) > 1 else Const(","), args[0]))
        if name == "format" and args and isinstance(args[0], Const):
            return _formatted(str(args[0].value), args[1:])
        raise NotCarried(f"the function {name}()")

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _next(self) -> str:
        kind, text = self._peek()
        return text if kind == "mark" else ""

    def _take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise NotCarried(f"an expression without {mark!r} in its place")
        self._take()


def _formatted(pattern: str, args: list[Node]) -> Node:
    parts: list[Node] = []
    for piece in re.split(r"(\{\{|\}\}|\{\d+\})", pattern):
        if re.fullmatch(r"\{\d+\}", piece):
            number = int(piece[1:-1])
            if number >= len(args):
                raise NotCarried(f"format() with {piece} and {len(args)} values")
            parts.append(args[number])
        elif piece:
            parts.append(Const({"{{": "{", "}}": "}"}.get(piece, piece)))
    return joined(*parts)


def _simplified(node: Node) -> Node:
    """Without what is true anyway: `success() && x` is `x`."""
    if not isinstance(node, Op):
        return node
    operands = tuple(_simplified(each) for each in node.operands)
    if node.name == "&&":
        left = [each for each in operands if each != Const(True)]
        return Const(True) if not left else left[0] if len(left) == 1 else Op("&&", tuple(left))
    if node.name == "||" and Const(True) in operands:
        return Const(True)
    if node.name == "!" and isinstance(operands[0], Const):
        return Const(not operands[0].value)
    return Op(node.name, operands)

"""What other languages write in expressions, and what to write instead: for an expression that JMESPath cannot parse.

An expression is rewritten slip by slip, what is in quotes left as it is. If the result parses, it is what was probably
meant, and said whole; otherwise one sentence is said about the first slip. Nothing here changes what an expression
means: it only makes messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import jmespath
from jmespath.exceptions import JMESPathError

MAX_CHARACTERS = 300
"""Of a longer expression nothing is said: a hostile plan may have thousands of them."""
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`|\"(?:[^\"\\]|\\.)*\"")
_CURLY = str.maketrans("\u201c\u201d\u201e\u2018\u2019", "'''''")
_KEPT = re.compile(r"\x00(\d+)\x00")
_K = r"\x00\d+\x00"
_PATH = rf"(?<![\w.-])(?:[A-Za-z_][\w-]*|{_K})(?:\.(?:[A-Za-z_][\w-]*|{_K})|\[[^\[\]]{{0,40}}\])*"
_VALUE = rf"(?:{_PATH}|\[[^\[\]]{{1,200}}\])"
_SIGNS = {"eq": "==", "ne": "!=", "neq": "!=", "equals": "==", "lt": "<", "gt": ">", "le": "<=", "lte": "<=",
          "ge": ">=", "gte": ">=", "is not": "!=", "is": "=="}  # fmt: skip
LITERALS = {"true": "true", "false": "false", "null": "null", "none": "null"}
"""Words that stand for values in other languages, and the values as JSON has them."""
_LOGIC = {"and": "&&", "or": "||"}
_FUNCTIONS = {"includes": "contains", "startswith": "starts_with", "endswith": "ends_with"}
_WORDS = "|".join(("contains", "includes", r"starts[ _]?with", r"ends[ _]?with"))
_NUMBER = "a number is written in backticks, as in a > `0`"
_CALLED = "a function is called with its values, as in contains(LIST, VALUE)"


class Instead(NamedTuple):
    """What is said of an expression that does not parse."""

    said: str
    """What is written otherwise; empty: nothing is known."""
    expression: str = ""
    """The whole expression as it was probably meant; empty if that is not known."""


class _Rewriting:
    """An expression while it is rewritten; texts in quotes are kept apart."""

    def __init__(self, text: str) -> None:
        self.kept = list[str]()
        self.text = _QUOTED.sub(lambda found: self.keep(found[0]), text.translate(_CURLY))

    def keep(self, quoted: str) -> str:
        """What stands for a text in quotes."""
        self.kept.append(quoted)
        return f"\x00{len(self.kept) - 1}\x00"

    def quoted(self, place: str) -> str:
        """The text in quotes that something stands for."""
        return self.kept[int(place.strip("\x00"))]

    def changed(self, slip: _Slip) -> str:
        """The text without a slip."""
        change = slip.change
        return self.text if change is None else slip.pattern.sub(lambda found: change(self, found), self.text)

    def whole(self) -> str:
        """The expression."""
        return _KEPT.sub(lambda found: self.kept[int(found[1])], self.text)


class _Slip(NamedTuple):
    pattern: re.Pattern[str]
    said: str
    change: Callable[[_Rewriting, re.Match[str]], str] | None
    """What to write for a match; None: that depends on what is meant."""


def _called(_: _Rewriting, found: re.Match[str]) -> str:
    name = re.sub(r"[ _]", "", found["name"].lower())
    return f"{_FUNCTIONS.get(name, name)}({found['of']}, {found['value']})"


def _contained(_: _Rewriting, found: re.Match[str]) -> str:
    return f"{'!' if found['no'] else ''}contains({found['of']}, {found['value']})"


def _field(writing: _Rewriting, found: re.Match[str]) -> str:
    field = after_dot(writing.quoted(found[1])[1:-1])
    return "." + writing.keep(field[1:]) if field.endswith('"') else field


def _text(writing: _Rewriting, found: re.Match[str]) -> str:
    quoted = writing.quoted(found[2])
    return found[1] + (writing.keep(f"'{quoted[1:-1]}'") if quoted[0] == '"' and "'" not in quoted else found[2])


_SLIPS = [
    _Slip(re.compile(r"^\s*-?\d+\s*(\.\.|-|to)\s*-?\d+\s*$"), "a range is written out: [`1`, `2`, `3`]", None),
    _Slip(
        re.compile(r"^\s*\$?\{\{\s*([^{}]+?)\s*\}\}\s*$|\$?\{\{\s*([^{}]+?)\s*\}\}"),
        "an expression has no braces",
        lambda _, found: found[1] or found[2],
    ),
    _Slip(
        re.compile(r"(?<![\w'\"])\$\{(\w[^{}]*)\}|(?<![\w'\"])\$(?=\w)"),
        "an expression has no dollar sign",
        lambda _, found: found[1] or "",
    ),
    _Slip(re.compile(r"=~|~="), "JMESPath has no patterns; contains, starts_with and ends_with are functions", None),
    _Slip(re.compile(r"(?<![=!<>])={3}(?!=)"), "equality is written ==", lambda *_: "=="),
    _Slip(re.compile(r"!==|<>"), "inequality is written !=", lambda *_: "!="),
    _Slip(re.compile(r"(?<![=!<>~])=(?![=~])"), "equality is written ==", lambda *_: "=="),
    _Slip(
        re.compile(r"(?<=[\s)\]\x00])(and|or)(?=[\s(!])", re.IGNORECASE),
        "&&, || and ! stand for and, or, not",
        lambda _, found: _LOGIC[found[1].lower()],
    ),
    _Slip(
        re.compile(rf"(?P<value>{_VALUE})\s+(?P<no>not\s+)?in\s+(?P<of>{_VALUE})", re.IGNORECASE),
        _CALLED,
        _contained,
    ),
    _Slip(re.compile(rf"(?P<of>{_PATH})\s+(?P<name>{_WORDS})\s+(?P<value>{_VALUE})", re.IGNORECASE), _CALLED, _called),
    _Slip(
        re.compile(r"(?<=[\s)\]\x00])(is\s+not|is|eq|neq?|equals|lte?|gte?|le|ge)(?=\s)", re.IGNORECASE),
        "values are compared with ==, !=, <, <=, > and >=",
        lambda _, found: _SIGNS[" ".join(found[1].lower().split())],
    ),
    _Slip(
        re.compile(rf"(?:^|(?<=[\s(!]))not(?:\s+(?={_PATH}\s*(?:$|\)|&&|\|\|))|\s*(?=\())", re.IGNORECASE),
        "&&, || and ! stand for and, or, not",
        lambda *_: "!",
    ),
    _Slip(re.compile(r"^not\s|\snot\s", re.IGNORECASE), "&&, || and ! stand for and, or, not", None),
    _Slip(re.compile(r"(?<=[\w)\]\x00])\s*&(?!&)\s*"), "and is written &&", lambda *_: " && "),
    _Slip(re.compile(rf"\[({_K})\]"), "a field follows a dot", _field),
    _Slip(
        re.compile(r"(?<![\w-])[A-Za-z_]\w*(?:-\w+)+(?![\w(-])"),
        "a name with a hyphen is written in double quotes",
        lambda writing, found: writing.keep(f'"{found[0]}"'),
    ),
    _Slip(
        re.compile(r"(?<![\w.\x00-])\d+[A-Za-z_][\w-]*"),
        "a name that begins with a digit is written in double quotes",
        lambda writing, found: writing.keep(f'"{found[0]}"'),
    ),
    _Slip(
        re.compile(r"(?<=[\w)\]\x00])(?:\s*[+/%]\s*|\s+[-*]\s+)(?=[\w\[(@\x00])"),
        "JMESPath does not calculate; a step with run_python does",
        None,
    ),
    _Slip(
        re.compile(r"\[\s*-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?)+\s*\]"),
        _NUMBER,
        lambda writing, found: re.sub(r"-?\d+(?:\.\d+)?", lambda each: writing.keep(f"`{each[0]}`"), found[0]),
    ),
    _Slip(
        re.compile(r"([=<>]\s*|\|\|\s*|&&\s*)(-?\d+(?:\.\d+)?)(?![\w.])"),
        _NUMBER,
        lambda writing, found: found[1] + writing.keep(f"`{found[2]}`"),
    ),
    _Slip(
        re.compile(r"(?<![\w.\x00\[:-])(-?\d+(?:\.\d+)?)(?=\s*[=<>!])"),
        _NUMBER,
        lambda writing, found: writing.keep(f"`{found[1]}`"),
    ),
    _Slip(
        re.compile(r"(?<=[\w)\]\x00])\.(\d+)(?!\w|\.\d)"),
        "an item of a list is written [0]",
        lambda _, found: f"[{found[1]}]",
    ),
    _Slip(re.compile(r"\?[^:\]]*:"), "JMESPath has no `? :`; a && b || c gives b if a holds, and else c", None),
    _Slip(re.compile(r"^[^\[{(]*,[^\[{(]*$"), "a list is written in brackets: [a, b]", None),
]
"""In the order in which they are looked for."""
_MORE = [
    _Slip(
        re.compile(r"([=!]=\s*|\|\|\s*)(true|false|null|none)\b(?!\s*[.(\[])", re.IGNORECASE),
        "",
        lambda writing, found: found[1] + writing.keep(f"`{LITERALS[found[2].lower()]}`"),
    ),
    _Slip(re.compile(rf"([=!]=\s*)({_K})(?!\s*[.(\[])"), "", _text),
]
"""What parses and is said elsewhere: a rewritten expression has it right as well."""


def after_dot(name: str) -> str:
    """A field by its name, as the next part of an expression; in quotes where it needs them."""
    return f".{name}" if re.fullmatch(r"[A-Za-z_]\w*", name) else f'."{name}"'


def instead(expression: str) -> Instead:
    """What to write instead of an expression that does not parse."""
    if len(expression) > MAX_CHARACTERS:
        return Instead("")
    writing, said = _Rewriting(expression.replace("\x00", "")), list[str]()
    if writing.whole() != expression:
        said.append("quotes are straight")
    for slip in _SLIPS:
        before, writing.text = writing.text, writing.changed(slip)
        if writing.text != before or (slip.change is None and slip.pattern.search(before)):
            said.append(slip.said)
    for slip in _MORE:
        writing.text = writing.changed(slip)
    whole = writing.whole().strip()
    if said and whole != expression and _parses(whole):
        return Instead("; ".join(dict.fromkeys(said)), whole)
    return Instead(said[0] if said else "")


def in_yaml(expression: str) -> str:
    """An expression as a YAML file has it, where it cannot stand there as it is; empty: it can."""
    is_plain = expression[:1] not in "\"'`!&*@[]{}|>%#" and not re.search(r": | #|:$", expression)
    return "" if is_plain else "'" + expression.replace("'", "''") + "'"


def _parses(expression: str) -> bool:
    try:
        jmespath.compile(expression)
    except (JMESPathError, RecursionError):
        return False
    return True

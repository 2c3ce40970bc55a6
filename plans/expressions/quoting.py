"""Quotes values inserted into code, so that they never become code: shell words and Python literals.

The context of an insertion decides its quoting. Where the context is ambiguous, the insertion is rejected with an
alternative: a rejected plan is fixed in a minute, an injected command is not (FAULTS T7).

What is ambiguous is refused with another way to write it: a refusal is fixed in a minute, an injected command is not.
Rejected: environment variables only, and no quoting.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from itertools import count
from math import inf
from typing import Any

from plansurvive.plans.errors import BadReference
from plansurvive.plans.expressions.python_code import NOT_PARSED, parsed

_DOUBLE = re.compile(r'([\\"$`])')
_START = r"(?:^|[\s;|&({])"
_INTERPRETER = r"(?:ba|da|z|k|a)?sh\b|(?:python[\d.]*|perl|ruby|node|php)\b"
_CALLED = re.compile(rf"{_START}(?:[\w/.-]*/)?(?:{_INTERPRETER})")
"""An interpreter that is called. Its start is the only separator or blank in it, so matches never overlap."""
_SEPARATOR = re.compile(r"[|;&\n]")
_FLAG = re.compile(r"\s-(\w*)")
_CODE_FLAG = re.compile(r"\s-\w*[cer]\b")
"""An option after which an interpreter takes code: `-c`, `-e`, `-xr`."""
_READS_CODE = re.compile(rf"{_START}(?:awk|gawk|mawk|sed)\s|(?:^|[;|&({{])\s*(?:source|\.)\s")
"""Further commands that treat one argument as code: no value may be inserted inside quotes."""
_ALL_CODE = re.compile(
    rf"{_START}(?:eval|ssh|su)\s|(?:^|[;|&({{]|\b(?:then|do|else))\s*(?:trap|let|declare|typeset|watch|parallel)\s"
    rf"|\|\s*(?:\w*/)*(?:{_INTERPRETER})\s*(?:-s?\s*)?(?:$|[;&|)\n])"
)
"""Commands that treat all their arguments as code, and pipes into an interpreter."""
_BREAKS = " \t\n;|&()<>"
"""Characters after which a word begins."""
_TEST = re.compile(r"\[\[\s")
_BORING = {
    "plain": re.compile(r"[^\\'\"`$()<#\[]+"),
    "double": re.compile(r'[^\\"`$]+'),
    "single": re.compile(r"[^']+"),
}
"""Characters that change nothing in a context, by context."""
_PLACEHOLDER = "_inserted_value_"
_NAMELESS = ("ctx", "op", "ops", "attr", "id", "type_comment")
_FIELDS = {
    kind: tuple(field for field in kind._fields if field not in _NAMELESS and kind is not ast.Constant)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
"""By the kind of a syntax tree's node, the fields that may hold nodes with names."""
_CASE, _IN = re.compile(rf"{_START}case\s"), re.compile(r"\sin\s")


def join_shell(literals: list[str], values: list[str]) -> str:
    """A shell command with each value inserted as inert text, whatever characters it contains. Raises BadReference."""
    pieces, scan, code = [literals[0]], _ShellScan(literals[0]), _InnerCode(literals)
    for value, literal in zip(values, literals[1:], strict=True):
        if "\0" in value:
            raise BadReference("a value with a NUL character cannot be part of a command; remove it")
        context = scan.context()
        code.refuse(context)
        pieces += [_shell_text(value, context), literal]
        code.advance(literal)
        scan.feed(literal)
    return "".join(pieces)


class _InnerCode:
    """Where a command's literal text hands code to another interpreter. Linear: everything is looked up in one pass."""

    def __init__(self, literals: list[str]) -> None:
        self._whole = whole = "".join(literals)
        self._called = [match.end() for match in _CALLED.finditer(whole)]
        self._separators = [match.start() for match in _SEPARATOR.finditer(whole)]
        self._flags = [match.span() for match in _FLAG.finditer(whole)]
        self._case_end = self._end_of_case()
        self._all_code = bool(_ALL_CODE.search(whole))
        self._reads_code = bool(_READS_CODE.search(whole)) or self._has_code_flag()
        self._at = self._word_end = 0
        self.advance(literals[0])

    def advance(self, literal: str) -> None:
        """Move behind the next literal."""
        text = literal.rstrip()
        if text:
            self._word_end = self._at + len(text)
        self._at += len(literal)

    def refuse(self, context: str) -> None:
        """Raise BadReference if a value in this context, at this place, would be read as code."""
        if self._case_end <= self._at:
            raise BadReference("a value cannot safely be inserted after `case ... in` in a command; use `if`, or `env`")
        inside = context != "plain" and self._reads_code
        if inside or self._all_code or self._is_at_code():
            raise BadReference(
                "a value in the code of another shell or interpreter would be read as code there;"
                " pass it as an argument instead: sh -c 'echo \"$1\"' _ {{step}}"
            )

    def _end_of_case(self) -> float:
        """Where the first `case ... in` ends."""
        case = _CASE.search(self._whole)
        found = _IN.search(self._whole, case.end()) if case else None
        return found.end() if found else inf

    def _has_code_flag(self) -> bool:
        """Whether an interpreter has a code flag, with no separator in between (the flag may begin the next line)."""
        flags = [match.start() for match in _CODE_FLAG.finditer(self._whole)]
        ends = [*self._separators, len(self._whole)]
        return any(_first(flags, called) <= _first(ends, called) for called in self._called)

    def _is_at_code(self) -> bool:
        """Whether the text up to here ends with an interpreter and its code flag: the next word is the code itself."""
        if self._whole[max(self._word_end - 1, 0) : self._word_end] not in ("c", "e", "r"):
            return False
        index = bisect_right(self._flags, self._word_end - 3, key=lambda span: span[0]) - 1
        if index < 0:
            return False
        start, end = self._flags[index]
        if self._word_end > end:
            return False
        before = bisect_right(self._called, start) - 1
        separator = bisect_left(self._separators, start) - 1
        return before >= 0 and (separator < 0 or self._called[before] > self._separators[separator])


def _first(places: list[int], at: int) -> float:
    """The first of the sorted places that is not before `at`."""
    index = bisect_left(places, at)
    return places[index] if index < len(places) else inf


def join_python(literals: list[str], values: list[Any]) -> str:
    """Python code with each value as a literal. Raises BadReference where none is allowed, as inside quotes."""
    stem = _stem(literals)
    names = [f"{stem}{index}_" for index in range(len(values))]
    code = literals[0] + "".join(name + literal for name, literal in zip(names, literals[1:], strict=True))
    try:
        tree = parsed(code)
    except NOT_PARSED as error:
        raise BadReference(f"the Python code does not parse with its values inserted: {error}") from error
    if not _free_names(tree).issuperset(names):
        raise BadReference("a value in Python code must stand by itself, outside quotes: data = {{step}}")
    texts = {name: f"({value!r})" for name, value in zip(names, values, strict=True)}
    # One pass, so that a value that looks like a placeholder is not replaced again.
    return re.sub(rf"{stem}[0-9]+_", lambda match: texts.get(match[0], match[0]), code)


def _stem(literals: list[str]) -> str:
    """How the names begin that stand for values: short, and as no name in the code begins."""
    whole = "\0".join(literals)
    if _PLACEHOLDER not in whole:
        return _PLACEHOLDER
    used = set(re.findall(rf"(?={_PLACEHOLDER}x([0-9]{{1,9}})_)", whole))
    return f"{_PLACEHOLDER}x{next(number for number in count() if str(number) not in used)}_"


def _free_names(tree: ast.AST) -> set[str]:
    """The names that are read, without those that are read in an f-string."""
    outside, texts = _names_read([tree])
    inside: set[str] = set()
    while texts:
        found, texts = _names_read([child for text in texts for child in text.values])
        inside |= found
    return outside - inside


def _names_read(level: list[ast.AST]) -> tuple[set[str], list[ast.JoinedStr]]:
    """The names that are read in these nodes, f-strings left out, and the f-strings.

    Level by level and without the fields that hold no names, since `ast.walk` takes ten times as long.
    """
    names: list[ast.Name] = []
    texts: list[ast.JoinedStr] = []
    while level:
        below: list[Any] = []
        for node in level:
            if isinstance(node, ast.Name):
                names.append(node)
            elif isinstance(node, ast.JoinedStr):
                texts.append(node)
            else:
                for field in _FIELDS.get(type(node), node._fields):
                    child = getattr(node, field, None)
                    if isinstance(child, list):
                        below += child
                    else:
                        below.append(child)
        level = [node for node in below if isinstance(node, ast.AST)]
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}, texts


def _shell_text(value: str, context: str) -> str:
    if context == "single":
        return value.replace("'", "'\\''")
    if context == "double":
        return _DOUBLE.sub(r"\\\1", value)
    return "'" + value.replace("'", "'\\''") + "'"  # always quoted: a bare `if`, `a=b` or `~x` has a meaning


DOLLAR = "a dollar sign"


class _ShellScan:
    """Tracks quoting in a POSIX shell command, just enough to know the context of each insertion."""

    def __init__(self, text: str) -> None:
        self._stack = ["plain"]
        self._refused = ""
        self._skip = False
        self._dollar = False
        self._word_start = True
        self.feed(text)

    def context(self) -> str:
        """`plain`, `single` or `double`. Raises BadReference where the context is ambiguous."""
        refused = self._refused or ("a backslash" if self._skip else DOLLAR if self._dollar else "")
        if refused:
            raise BadReference(
                f"a value cannot safely be inserted after {refused} in a command;"
                " write it to a file in an earlier step, or pass it in `env`",
                after=refused,
            )
        return self._stack[-1]

    def feed(self, text: str) -> None:
        """Advance over literal text."""
        index = 0
        while index < len(text):
            index = self._passed(text, index)
            if index < len(text):
                index += self._step(text, index)

    def _passed(self, text: str, index: int) -> int:
        """Skip characters that change nothing, except that a word may begin after them."""
        boring = None if self._skip else _BORING[self._stack[-1]].match(text, index)
        if boring is None:
            return index
        self._dollar, self._word_start = False, boring[0][-1] in _BREAKS
        return boring.end()

    def _step(self, text: str, index: int) -> int:
        char, top = text[index], self._stack[-1]
        self._dollar = char == "$" and top != "single" and not self._skip
        if self._skip:
            self._skip = False
        elif top == "single":
            if char == "'":
                self._stack.pop()
        elif char == "\\":
            self._skip = True
        elif char == "`" or text.startswith(("${", "$((", "$'", "$["), index):
            self._refuse(text[index : index + 2])
        elif text.startswith("$(", index):
            self._stack.append("plain")
            self._dollar, self._word_start = False, True
            return 2
        elif char == '"':
            self._stack.pop() if top == "double" else self._stack.append("double")
        elif top == "plain":
            self._plain(char, text, index)
        self._word_start = char in _BREAKS
        return 1

    def _plain(self, char: str, text: str, index: int) -> None:
        if char == "'":
            self._stack.append("single")
        elif text.startswith("((", index) or (self._word_start and _TEST.match(text, index)):
            self._refuse(text[index : index + 2])  # arithmetic evaluates command substitutions in an index: a[$(x)]
        elif char == "(":
            self._stack.append("plain")
        elif char == ")" and len(self._stack) > 1:
            self._stack.pop()
        elif text.startswith("<<", index):
            self._refuse("a here-document")
        elif char == "#" and self._word_start:
            self._refuse("a comment")

    def _refuse(self, what: str) -> None:
        self._refused = self._refused or what

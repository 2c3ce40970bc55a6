"""The first, quadratic version of `plans.expressions.quoting`: the oracle that the linear one is compared with."""

from __future__ import annotations

import ast
import re
from typing import Any

from plansurvive.plans.errors import BadReference

_DOUBLE = re.compile(r'([\\"$`])')
_START = r"(?:^|[\s;|&({])"
_INTERPRETER = r"(?:ba|da|z|k|a)?sh\b|(?:python[\d.]*|perl|ruby|node|php)\b"
_READS_CODE = re.compile(
    rf"{_START}(?:[\w/.-]*/)?(?:{_INTERPRETER})[^|;&\n]*\s-\w*[cer]\b|{_START}(?:awk|gawk|mawk|sed)\s|(?:^|[;|&({{])\s*(?:source|\.)\s"
)
"""Commands that treat one argument as code: no value may be inserted inside quotes."""
_AT_CODE = re.compile(rf"{_START}(?:[\w/.-]*/)?(?:{_INTERPRETER})[^|;&\n]*\s-\w*[cer]\s*$")
"""Matches when the next word is that argument itself."""
_ALL_CODE = re.compile(
    rf"{_START}(?:eval|ssh|su)\s|(?:^|[;|&({{]|\b(?:then|do|else))\s*(?:trap|let|declare|typeset|watch|parallel)\s"
    rf"|\|\s*(?:\w*/)*(?:{_INTERPRETER})\s*(?:-s?\s*)?(?:$|[;&|)\n])"
)
"""Commands that treat all their arguments as code, and pipes into an interpreter."""
_CASE = re.compile(rf"{_START}case\s.*\sin\s", re.DOTALL)


def join_shell(literals: list[str], values: list[str]) -> str:
    """A shell command with each value inserted as inert text, whatever characters it contains. Raises BadReference."""
    command, before, scan = literals[0], literals[0], _ShellScan(literals[0])
    whole = "".join(literals)
    for value, literal in zip(values, literals[1:], strict=True):
        if "\0" in value:
            raise BadReference("a value with a NUL character cannot be part of a command; remove it")
        context = scan.context()
        _refuse_inner_code(context, before, whole)
        command += _shell_text(value, context) + literal
        before += literal
        scan.feed(literal)
    return command


def _refuse_inner_code(context: str, before: str, whole: str) -> None:
    if _CASE.search(before):
        raise BadReference("a value cannot safely be inserted after `case ... in` in a command; use `if`, or `env`")
    inside = context != "plain" and _READS_CODE.search(whole)
    if inside or _AT_CODE.search(before) or _ALL_CODE.search(whole):
        raise BadReference(
            "a value in the code of another shell or interpreter would be read as code there;"
            " pass it as an argument instead: sh -c 'echo \"$1\"' _ {{step}}"
        )


def join_python(literals: list[str], values: list[Any]) -> str:
    """Python code with each value as a literal. Raises BadReference where none is allowed, as inside quotes."""
    stem = "_inserted_value_"
    while any(stem in literal for literal in literals):
        stem += "_"
    names = [f"{stem}{index}_" for index in range(len(values))]
    code = literals[0] + "".join(name + literal for name, literal in zip(names, literals[1:], strict=True))
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadReference(f"the Python code does not parse with its values inserted: {error}") from error
    free = _names(tree) - {name for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for name in _names(node)}
    if not free.issuperset(names):
        raise BadReference("a value in Python code must stand by itself, outside quotes: data = {{step}}")
    texts = {name: f"({value!r})" for name, value in zip(names, values, strict=True)}
    # One pass, so that a value that looks like a placeholder is not replaced again.
    return re.sub("|".join(map(re.escape, names)), lambda match: texts[match[0]], code)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}


def _shell_text(value: str, context: str) -> str:
    if context == "single":
        return value.replace("'", "'\\''")
    if context == "double":
        return _DOUBLE.sub(r"\\\1", value)
    return "'" + value.replace("'", "'\\''") + "'"  # always quoted: a bare `if`, `a=b` or `~x` has a meaning


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
        refused = self._refused or ("a backslash" if self._skip else "a dollar sign" if self._dollar else "")
        if refused:
            raise BadReference(
                f"a value cannot safely be inserted after {refused} in a command;"
                " write it to a file in an earlier step, or pass it in `env`"
            )
        return self._stack[-1]

    def feed(self, text: str) -> None:
        """Advance over literal text."""
        index = 0
        while index < len(text):
            index += self._step(text, index)

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
        self._word_start = char in " \t\n;|&()<>"
        return 1

    def _plain(self, char: str, text: str, index: int) -> None:
        if char == "'":
            self._stack.append("single")
        elif text.startswith("((", index) or (self._word_start and re.match(r"\[\[\s", text[index:])):
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

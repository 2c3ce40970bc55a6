"""Static analysis of the files a shell command may write, using tree-sitter's bash grammar. Nothing is run.

Detects redirections (`>`, `>>`, `>|`, `&>`, `2>`, `<>`) with quotes and here-documents taken into account, `tee`, and
common programs that write files (cp, mv, touch, sed -i, dd, curl -o ...); nested programs (`sh -c`, `python -c`, their
here-documents) are analysed in turn. A path counts if it follows from the command itself: a literal, or variables,
loops and `cd` with literal values. An estimate; `activities.provenance.scan` sees what really changed.

`a=$a$a` doubles a value with each assignment, and nested loops multiply programs: the analysis has a budget, and what
was found until it is used up is returned.

Rejected: bashlex, which failed on quoted here-documents, `case`, `[[`, `time` and arithmetic, and is GPL.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from plansurvive.activities.provenance.shell_commands import Texts, written_by_program
from plansurvive.plans.files.python_writes import written_by_python

MAX_VALUES = 50
MAX_CHARACTERS = 100_000
"""A word whose possible values are longer in total is unknown."""
MAX_PATH = 4_096
"""Characters of a path; no longer one can be opened."""
MAX_VARIABLES = 500
"""Further variables are unknown: each assignment copies those before."""
MAX_PROGRAM_CHARACTERS = 500_000
"""Longer programs are not analysed, nor are nested ones after so many characters of programs in total."""
UNITS = 300_000
"""Budget of a command with its nested programs: a unit per node of a syntax tree, per value, and per 100 characters."""
MAX_DEPTH = 200
"""Maximum nesting depth of the syntax tree."""
MAX_PROGRAMS = 5
"""Maximum nesting depth of programs."""

_BASH = Language(tree_sitter_bash.language())
_WRITING = frozenset((">", ">>", ">|", "&>", "&>>", ">&", "<>"))
_OWN_SCOPE = frozenset(("subshell", "command_substitution", "process_substitution"))
_BEFORE = frozenset(
    ("sudo", "nohup", "time", "nice", "exec", "command", "builtin", "env", "stdbuf", "ionice", "setsid")
)
"""Prefix programs: they run the command that follows."""
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_PYTHON = re.compile(r"python[\d.]*")
_GLOB = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([\\"$`\n])')


def written_by_shell(*commands: str) -> list[str]:
    """Paths that commands may write, relative to their working directory (which is also their HOME), or absolute."""
    scan = _Scan()
    with suppress(_UsedUp):
        for command in commands:
            scan.program(command, _Scope())
    return list(scan.found)


class _UsedUp(Exception):
    """The budget is used up."""


@dataclass(frozen=True)
class _Scope:
    """The state of the analysis at one point of a command."""

    folder: str | None = "."
    """The working directory; None once unknown."""
    variables: dict[str, Texts] = field(default_factory=lambda: {"HOME": (".",), "PWD": (".",)})
    programs: int = 0
    heredoc: str = ""


class _Scan:
    """Walks the syntax tree of a command in source order."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}
        self._left, self._characters = UNITS, MAX_PROGRAM_CHARACTERS

    def _spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise _UsedUp

    def _begin(self, text: str) -> None:
        """Count a program; raises _UsedUp when it is one too many."""
        self._characters -= len(text)
        if self._characters < 0:
            raise _UsedUp

    def program(self, text: str, scope: _Scope) -> None:
        """Analyse a shell program; its assignments are local to it. Raises _UsedUp."""
        if scope.programs <= MAX_PROGRAMS:
            self._begin(text)
            self._visit(Parser(_BASH).parse(text.encode("utf-8", "replace")).root_node, scope, 0)

    def add(self, texts: Texts, scope: _Scope) -> None:
        """Record these paths as written."""
        self._spend(len(texts))
        for text in texts:
            path = text if text.startswith("/") or scope.folder is None else posixpath.join(scope.folder, text)
            is_known = bool(text) and "\0" not in text and (text.startswith("/") or scope.folder is not None)
            if is_known and len(path) < MAX_PATH and not path.startswith(("/dev/", "/proc/self/fd/")):
                self.found.setdefault(posixpath.normpath(path))

    def _visit(self, node: Node, scope: _Scope, depth: int) -> _Scope:
        """Visit a node; returns the state after it."""
        self._spend(1 + len(node.children))
        if depth > MAX_DEPTH:
            return scope
        if node.type == "variable_assignment":
            return self._assigned(node, scope, depth)
        if node.type == "file_redirect":
            self._redirected(node, scope)
        if node.type == "command":
            return self._command(node, scope, depth)
        if node.type == "redirected_statement":
            scope = replace(scope, heredoc=_heredoc(node))
        if node.type == "for_statement":
            scope = self._loop(node, scope)
        inner = scope
        for child in node.children:
            after = self._visit(child, inner, depth + 1)
            if node.type != "pipeline":
                inner = after
        return scope if node.type in _OWN_SCOPE else replace(inner, heredoc="")

    def _assigned(self, node: Node, scope: _Scope, depth: int) -> _Scope:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        for child in node.children:
            self._visit(child, scope, depth + 1)
        if name is None or value is None:
            return scope
        return self._with_variable(scope, _text(name), self._values(value, scope))

    def _with_variable(self, scope: _Scope, name: str, values: Texts) -> _Scope:
        if name not in scope.variables and len(scope.variables) >= MAX_VARIABLES:
            return scope
        return replace(scope, variables={**scope.variables, name: values})

    def _values(self, node: Node, scope: _Scope) -> Texts:
        """The possible values of a word; empty if unknown."""
        texts = _texts(node, scope)
        self._spend(1 + sum(map(len, texts)) // 100)
        return texts

    def _loop(self, node: Node, scope: _Scope) -> _Scope:
        variable = node.child_by_field_name("variable")
        values = tuple(text for child in node.children_by_field_name("value") for text in self._values(child, scope))
        return scope if variable is None else self._with_variable(scope, _text(variable), values[:MAX_VALUES])

    def _redirected(self, node: Node, scope: _Scope) -> None:
        operator = next((_text(child) for child in node.children if _text(child) in _WRITING), "")
        target = node.child_by_field_name("destination")
        if not operator or target is None:
            return
        if operator == ">&" and re.fullmatch(r"[0-9]+-?|-", _text(target)):
            return  # duplicates a file descriptor
        self.add(self._values(target, scope), scope)

    def _command(self, node: Node, scope: _Scope, depth: int) -> _Scope:
        own = scope
        for child in node.children:  # `X=y command` assigns for that command only
            own = self._visit(child, own, depth + 1)
        words = _without_prefixes([self._values(child, own) for child in _words(node)])
        if not words or not words[0]:
            return scope
        name, arguments = words[0][0].rpartition("/")[2], words[1:]
        if name == "cd" or name == "pushd":
            return replace(scope, folder=_folder(arguments, scope))
        self._inner_program(name, arguments, replace(own, heredoc=scope.heredoc))
        for texts in written_by_program(name, arguments):
            self.add(texts, own)
        return scope

    def _inner_program(self, name: str, arguments: list[Texts], scope: _Scope) -> None:
        is_python = bool(_PYTHON.fullmatch(name))
        if not is_python and name not in _SHELLS and name != "eval":
            return
        inner = replace(scope, programs=scope.programs + 1, heredoc="")
        texts = _program_text(name, arguments, scope.heredoc)
        for text in texts:
            if not is_python:
                self.program(text, inner)
                continue
            self._begin(text)
            found = written_by_python(text)
            self.add(tuple(found.paths), inner)
            for command in found.commands:
                self.program(command, inner)


def _program_text(name: str, arguments: list[Texts], heredoc: str) -> Texts:
    """The program passed to an interpreter by -c or as a here-document."""
    if name == "eval":
        return (" ".join(texts[0] for texts in arguments),) if all(arguments) else ()
    for index, texts in enumerate(arguments[:-1]):
        if texts and re.fullmatch(r"-[A-Za-z]*c", texts[0]):
            return arguments[index + 1]
    reads_input = all(texts and texts[0].startswith("-") for texts in arguments)
    return (heredoc,) if heredoc and reads_input else ()


def _folder(arguments: list[Texts], scope: _Scope) -> str | None:
    if not arguments:
        return "."
    targets = arguments[-1]
    if len(targets) != 1 or targets[0] == "-" or (scope.folder is None and not targets[0].startswith("/")):
        return None
    folder = posixpath.join(scope.folder or ".", targets[0])
    return posixpath.normpath(folder) if len(folder) < MAX_PATH else None


def _words(command: Node) -> Iterator[Node]:
    name = command.child_by_field_name("name")
    if name is not None:
        yield name
    yield from command.children_by_field_name("argument")
    after = command.next_named_sibling  # `cmd > file more words`: the grammar parses the words as destinations
    if command.parent is not None and command.parent.type == "redirected_statement":
        while after is not None:
            if after.type == "file_redirect":
                yield from after.children_by_field_name("destination")[1:]
            after = after.next_named_sibling


def _without_prefixes(words: list[Texts]) -> list[Texts]:
    """The words after prefix programs with their options and assignments (`sudo -n`, `env X=y`)."""
    at = 0
    while at < len(words) and words[at] and words[at][0].rpartition("/")[2] in _BEFORE:
        at += 1
        while at < len(words) and words[at] and (words[at][0].startswith("-") or "=" in words[at][0]):
            at += 1
    return words[at:]


def _heredoc(statement: Node) -> str:
    """The text of the statement's here-document; empty if there is none."""
    for child in statement.children:
        if child.type == "heredoc_redirect":
            body = next((each for each in child.children if each.type == "heredoc_body"), None)
            return _text(body) if body is not None else ""
    return ""


def _texts(node: Node, scope: _Scope) -> Texts:
    """The possible values of a word; empty if unknown."""
    kind = node.type
    if kind == "word" or kind == "number":
        return _word(_text(node))
    if kind == "raw_string":
        return (_text(node)[1:-1],)
    if kind == "string":
        return _product([_in_quotes(child, scope) for child in node.children if _text(child) != '"'])
    if kind == "string_content":
        return (_ESCAPED_IN_QUOTES.sub(r"\1", _text(node)),)
    if kind in ("concatenation", "command_name"):
        return _product([_texts(child, scope) for child in node.children])
    if kind in ("simple_expansion", "expansion") and re.fullmatch(r"\$\w+|\$\{\w+\}", _text(node)):
        return scope.variables.get(_text(node).strip("${}"), ())
    return ()


def _in_quotes(node: Node, scope: _Scope) -> Texts:
    return (_text(node),) if not node.is_named else _texts(node, scope)


def _word(text: str) -> Texts:
    if _GLOB.search(_ESCAPED.sub("", text)):
        return ()
    plain = _ESCAPED.sub(lambda match: match[1].strip("\n"), text)
    return (plain.replace("~", ".", 1) if text == "~" or text.startswith("~/") else plain,)


def _product(parts: list[Texts]) -> Texts:
    count = 1
    for part in parts:
        count *= len(part)
        if not 0 < count <= MAX_VALUES:
            return ()
    characters = sum(sum(map(len, part)) * (count // len(part)) for part in parts)
    return tuple("".join(texts) for texts in product(*parts)) if characters <= MAX_CHARACTERS else ()


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")

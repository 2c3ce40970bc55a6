"""Which files a shell command may write, read off its text with a real parser (tree-sitter's grammar of bash).

Found are redirections (`>`, `>>`, `>|`, `&>`, `2>`, `<>`), whatever is quoted or stands in a here-document, `tee`, and
the programs that everybody uses to make files (cp, mv, touch, sed -i, dd, curl -o ...); programs inside programs
(`sh -c`, `python -c`, here-documents for them) are read in their turn. A name counts where its text follows from the
command itself: literal, or by variables, loops and `cd` with literal values. It is a reading, not a proof; what really
changed is seen by `activities.provenance.scan`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from activities.provenance.shell_commands import Texts, written_by_program
from plans.files.python_writes import written_by_python

MAX_VALUES = 50
MAX_DEPTH = 200
"""Constructs inside each other that are looked into."""
MAX_PROGRAMS = 5
"""Programs inside each other that are read."""

_BASH = Language(tree_sitter_bash.language())
_WRITING = frozenset((">", ">>", ">|", "&>", "&>>", ">&", "<>"))
_OWN_SCOPE = frozenset(("subshell", "command_substitution", "process_substitution"))
_BEFORE = frozenset(
    ("sudo", "nohup", "time", "nice", "exec", "command", "builtin", "env", "stdbuf", "ionice", "setsid")
)
"""Programs that run the one named after them."""
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_PYTHON = re.compile(r"python[\d.]*")
_GLOB = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([\\"$`\n])')


def written_by_shell(command: str) -> list[str]:
    """The files a command may write, relative to where it runs, or absolute. Its home is where it runs."""
    scan = _Scan()
    scan.program(command, _Scope())
    return list(scan.found)


@dataclass(frozen=True)
class _Scope:
    """What is known at one place of a command."""

    folder: str | None = "."
    """Where it works; None once that cannot be told any more."""
    variables: dict[str, Texts] = field(default_factory=lambda: {"HOME": (".",), "PWD": (".",)})
    programs: int = 0
    heredoc: str = ""


class _Scan:
    """Goes through a command in reading order."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def program(self, text: str, scope: _Scope) -> None:
        """A shell program; what it assigns stays its own."""
        if scope.programs <= MAX_PROGRAMS:
            self._visit(Parser(_BASH).parse(text.encode("utf-8", "replace")).root_node, scope, 0)

    def add(self, texts: Texts, scope: _Scope) -> None:
        """These are written."""
        for text in texts:
            path = text if text.startswith("/") or scope.folder is None else posixpath.join(scope.folder, text)
            is_known = bool(text) and "\0" not in text and (text.startswith("/") or scope.folder is not None)
            if is_known and len(path) < 4_096 and not path.startswith(("/dev/", "/proc/self/fd/")):
                self.found.setdefault(posixpath.normpath(path))

    def _visit(self, node: Node, scope: _Scope, depth: int) -> _Scope:
        """Look into a construct; returns what is known after it."""
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
        return replace(scope, variables={**scope.variables, _text(name): _texts(value, scope)})

    def _loop(self, node: Node, scope: _Scope) -> _Scope:
        variable = node.child_by_field_name("variable")
        values = tuple(text for child in node.children_by_field_name("value") for text in _texts(child, scope))
        if variable is None:
            return scope
        return replace(scope, variables={**scope.variables, _text(variable): values[:MAX_VALUES]})

    def _redirected(self, node: Node, scope: _Scope) -> None:
        operator = next((_text(child) for child in node.children if _text(child) in _WRITING), "")
        target = node.child_by_field_name("destination")
        if not operator or target is None:
            return
        if operator == ">&" and re.fullmatch(r"[0-9]+-?|-", _text(target)):
            return  # another descriptor, no file
        self.add(_texts(target, scope), scope)

    def _command(self, node: Node, scope: _Scope, depth: int) -> _Scope:
        own = scope
        for child in node.children:  # X=y before a command holds for that command
            own = self._visit(child, own, depth + 1)
        words = [_texts(child, own) for child in _words(node)]
        while words and (words[0] or ("",))[0].rpartition("/")[2] in _BEFORE:
            words = list(_without_prefix(words))
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
            found = written_by_python(text)
            self.add(tuple(found.paths), inner)
            for command in found.commands:
                self.program(command, inner)


def _program_text(name: str, arguments: list[Texts], heredoc: str) -> Texts:
    """The program that an interpreter is given on its command line or in a here-document."""
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
    return posixpath.normpath(posixpath.join(scope.folder or ".", targets[0]))


def _words(command: Node) -> Iterator[Node]:
    name = command.child_by_field_name("name")
    if name is not None:
        yield name
    yield from command.children_by_field_name("argument")
    after = command.next_named_sibling  # `cmd > file more words`: the grammar takes the words for destinations
    if command.parent is not None and command.parent.type == "redirected_statement":
        while after is not None:
            if after.type == "file_redirect":
                yield from after.children_by_field_name("destination")[1:]
            after = after.next_named_sibling


def _without_prefix(words: list[Texts]) -> Iterator[Texts]:
    """The words after `sudo`, `env X=y` and their kin."""
    rest = words[1:]
    while rest and rest[0] and (rest[0][0].startswith("-") or "=" in rest[0][0]):
        rest = rest[1:]
    yield from rest


def _heredoc(statement: Node) -> str:
    """The text of a here-document that nothing is inserted into."""
    for child in statement.children:
        if child.type == "heredoc_redirect":
            body = next((each for each in child.children if each.type == "heredoc_body"), None)
            return _text(body) if body is not None else ""
    return ""


def _texts(node: Node, scope: _Scope) -> Texts:
    """The texts a word may stand for; none when that cannot be told."""
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
    return tuple("".join(texts) for texts in product(*parts)) if count <= MAX_VALUES else ()


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")

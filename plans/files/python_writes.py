"""Static analysis of the files a Python program may write, using `ast`. The program is never run.

Detects calls that write a file: `open` in a writing mode, pathlib, shutil, os, archives, `to_csv` and the like. A path
counts if it follows from literals: names, f-strings, `+`, `/`, `os.path.join`, loops over literals, and the arguments
that the program's own functions are called with. An estimate: a path that cannot be determined is left out, one in a
branch that is not taken is reported. `activities.provenance.scan` sees what really changed.

Names can be bound to each other in circles, and `a = a + a` doubles a text with each line: the analysis has a budget,
and returns what it has found when that is used up.

It stays beside snapshots and tracing because nothing as cheap finds, before a `run_python` (5 ms), which old contents
undo will need. Rejected: copying all small files before the first command (PLANS_UNDO=full: 1.3 s of CPU and 22 MB for
2,250 files, and larger files are lost).
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from plansurvive.plans.expressions.python_code import parsed
from plansurvive.plans.files.writing_functions import (
    OPENERS,
    OS_WRITE_FLAGS,
    PATH_METHODS,
    PATH_MOVES,
    SAVERS,
    SECOND_NAMES,
    SHELLS,
    URLRETRIEVE,
    WRITES_FIRST,
    WRITES_SECOND,
)

MAX_VALUES = 50
"""Maximum possible values tracked per expression."""
MAX_DEPTH = 20
"""Maximum depth of name resolution."""
MAX_CODE_CHARACTERS = 500_000
MAX_CHARACTERS = 100_000
"""Longer texts are not put together: they are unknown. A path has less than 4,096, a shell command may have more."""
UNITS = 100_000
"""Budget of one program: a unit per expression looked at, per text put together, and per 100 characters in it. A usual
program of 64 KB with a thousand calls that write files takes a tenth of it."""


class _UsedUp(Exception):
    """The budget is used up."""


class Written(NamedTuple):
    """The paths a program may write and the shell commands it runs."""

    paths: list[str]
    """Relative to its working directory, or absolute."""
    commands: list[str]
    """Shell commands it runs, to be analysed in turn."""


def written_by_python(code: str) -> Written:
    """What a program may write; empty if it does not parse as Python, or is longer than MAX_CODE_CHARACTERS."""
    if len(code) > MAX_CODE_CHARACTERS:
        return Written([], [])
    try:
        tree = parsed(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Written([], [])
    reader = _Reader(tree)
    paths: dict[str, None] = {}
    commands: dict[str, None] = {}
    try:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            paths |= dict.fromkeys(posixpath.normpath(path) for path in reader.paths(call) if _is_path(path))
            commands |= dict.fromkeys(reader.commands(call))
    except (RecursionError, _UsedUp):
        pass
    return Written(list(paths), list(commands))


class _Reader:
    """Constant propagation over one program: the strings its expressions may evaluate to."""

    def __init__(self, tree: ast.Module) -> None:
        self._left = UNITS
        self._imports = dict(_imports(tree))
        self._values: dict[str, list[ast.expr]] = {}
        self._functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            self._collect(node)

    def _spend(self, units: int = 1) -> None:
        self._left -= units
        if self._left < 0:
            raise _UsedUp

    def paths(self, call: ast.Call) -> list[str]:
        """The paths a call writes."""
        name, first = self._name(call.func), call.args[0] if call.args else None
        if name in OPENERS:
            opened = first or _keyword(call, "file", "filename", "name")
            return self._texts(opened) if not _is_number(opened) and self._is_writing(call, 1) else []
        if name == "os.open":
            flags = ast.unparse(call.args[1]) if len(call.args) > 1 else ""
            return self._texts(first) if any(flag in flags for flag in OS_WRITE_FLAGS) else []
        if name in WRITES_SECOND or name == URLRETRIEVE:
            second = call.args[1] if len(call.args) > 1 else _keyword(call, *SECOND_NAMES, "filename")
            return self._texts(second)
        if name in WRITES_FIRST:
            return self._texts(first if first is not None else _keyword(call, "file", "fname", "database"))
        if isinstance(call.func, ast.Attribute):
            return self._of_method(call, call.func)
        return []

    def commands(self, call: ast.Call) -> list[str]:
        """The shell commands a call runs."""
        name = self._name(call.func)
        if name not in SHELLS or not call.args:
            return []
        if name.startswith("subprocess.") and not name.startswith("subprocess.get"):
            shell = _keyword(call, "shell")
            if not (isinstance(shell, ast.Constant) and shell.value is True):
                return []
        return self._texts(call.args[0])

    def _of_method(self, call: ast.Call, method: ast.Attribute) -> list[str]:
        first = call.args[0] if call.args else None
        if method.attr in PATH_METHODS and self._is_path(method.value):
            return self._texts(method.value)
        if method.attr in PATH_MOVES and self._is_path(method.value):
            return self._texts(first if first is not None else _keyword(call, "target"))
        if method.attr == "open" and self._is_path(method.value):
            return self._texts(method.value) if self._is_writing(call, 0) else []
        if method.attr in SAVERS:
            return self._texts(first if first is not None else _keyword(call, "path_or_buf", "fname", "path", "fp"))
        return []

    def _is_writing(self, call: ast.Call, position: int) -> bool:
        mode = call.args[position] if len(call.args) > position else _keyword(call, "mode")
        return any(set(text) & set("wax+") for text in self._texts(mode))

    def _is_path(self, node: ast.expr, depth: int = 0) -> bool:
        """Whether an expression is known to be a pathlib path."""
        self._spend()
        if depth > MAX_DEPTH:
            return False
        if isinstance(node, ast.Call):
            made = self._name(node.func).startswith("pathlib.")
            return made or (isinstance(node.func, ast.Attribute) and self._is_path(node.func.value, depth + 1))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._is_path(node.left, depth + 1) or self._is_path(node.right, depth + 1)
        if isinstance(node, ast.Name):
            return any(self._is_path(value, depth + 1) for value in self._values.get(node.id, []))
        return isinstance(node, ast.Attribute) and node.attr == "parent" and self._is_path(node.value, depth + 1)

    def _collect(self, node: ast.AST) -> None:
        """Record every binding of a name, regardless of control flow."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            for each in _items(node.iter):
                self._bind(node.target, each)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._functions:
            self._bind_arguments(self._functions[node.func.id], node)
        elif isinstance(node, ast.FunctionDef):
            named = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            for argument, default in zip(named, node.args.defaults, strict=True):
                self._bind(ast.Name(argument.arg), default)

    def _bind_arguments(self, function: ast.FunctionDef, call: ast.Call) -> None:
        for argument, value in zip(function.args.args, call.args, strict=False):
            self._bind(ast.Name(argument.arg), value)
        for keyword in call.keywords:
            if keyword.arg:
                self._bind(ast.Name(keyword.arg), keyword.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._values.setdefault(target.id, []).append(value)
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, each in zip(target.elts, value.elts, strict=True):
                self._bind(one, each)

    def _name(self, node: ast.expr) -> str:
        """The qualified name of a function, such as `shutil.copy`, whatever alias it was imported under."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._imports.get(node.id, node.id), *reversed(names)])

    def _texts(self, node: ast.expr | None, depth: int = 0) -> list[str]:
        """The strings an expression may evaluate to; empty if unknown."""
        self._spend()
        if node is None or depth > MAX_DEPTH:
            return []
        found: Iterator[str] = iter(())
        if isinstance(node, ast.Constant):
            found = iter([str(node.value)] if isinstance(node.value, str | int) else [])
        elif isinstance(node, ast.Name):
            found = (text for value in self._values.get(node.id, []) for text in self._texts(value, depth + 1))
        elif isinstance(node, ast.JoinedStr):
            found = self._joined(node.values, "", depth)
        elif isinstance(node, ast.FormattedValue):
            found = iter(self._texts(node.value, depth + 1) if node.format_spec is None else [])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            found = self._joined([node.left, node.right], "/" if isinstance(node.op, ast.Div) else "", depth)
        elif isinstance(node, ast.IfExp):
            found = iter([*self._texts(node.body, depth + 1), *self._texts(node.orelse, depth + 1)])
        elif isinstance(node, ast.Call):
            found = self._of_call(node, depth)
        elif isinstance(node, ast.Attribute) and node.attr == "parent":
            found = (posixpath.dirname(text) or "." for text in self._texts(node.value, depth + 1))
        texts = list(dict.fromkeys(text for text, _ in zip(found, range(MAX_VALUES), strict=False)))
        self._spend(sum(map(len, texts)) // 100)
        return texts

    def _of_call(self, call: ast.Call, depth: int) -> Iterator[str]:
        name = self._name(call.func)
        if name in ("str", "os.fspath", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "os.path.join"):
            return self._joined(call.args, "/", depth)
        if name in ("pathlib.Path.cwd", "os.getcwd", "pathlib.Path.home"):  # HOME of a command is its working directory
            return iter(["."])
        if name in ("os.path.expanduser", "os.path.abspath", "os.path.normpath"):
            return (text.replace("~", ".", 1) for text in self._texts(call.args[0] if call.args else None, depth + 1))
        if not isinstance(call.func, ast.Attribute):
            return iter(())
        method, own = call.func.attr, call.func.value
        if method == "joinpath":
            return self._joined([own, *call.args], "/", depth)
        if method in ("resolve", "absolute", "expanduser", "as_posix"):
            return iter(self._texts(own, depth + 1))
        if method in ("with_suffix", "with_name") and call.args:
            pairs = self._product([own, call.args[0]], depth)
            return (_renamed(path, new, method == "with_suffix") for path, new in pairs)
        if method == "format" and not call.keywords:
            return self._formatted(own, call.args, depth)
        return iter(())

    def _joined(self, nodes: list[ast.expr], between: str, depth: int) -> Iterator[str]:
        for texts in self._product(nodes, depth):
            yield posixpath.join(*texts) if between and texts else between.join(texts)

    def _product(self, nodes: list[ast.expr], depth: int) -> Iterator[tuple[str, ...]]:
        """Every combination of the nodes' texts that is not too long."""
        for texts in product(*(self._texts(node, depth + 1) for node in nodes)):
            characters = sum(map(len, texts))
            self._spend(1 + len(texts) + min(characters, MAX_CHARACTERS) // 100)
            if characters <= MAX_CHARACTERS:
                yield texts

    def _formatted(self, own: ast.expr, arguments: list[ast.expr], depth: int) -> Iterator[str]:
        for text, *values in self._product([own, *arguments], depth):
            self._spend(len(values) * len(text) // 1_000)
            for value in values:
                text = text.replace("{}", value, 1)
            if "{" not in text:
                yield text


def _renamed(path: str, new: str, suffix: bool) -> str:
    folder, name = posixpath.split(path)
    return posixpath.join(folder, posixpath.splitext(name)[0] + new if suffix else new)


def _items(node: ast.expr) -> list[ast.expr]:
    """The items a loop iterates over: a literal list, the keys of a literal dict, or a small range."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts[:MAX_VALUES]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None][:MAX_VALUES]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        bounds = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, int)]
        if bounds and len(bounds) == len(node.args) <= 3 and 0 not in bounds[2:]:
            return [ast.Constant(number) for number in range(*bounds)[:MAX_VALUES]]
    return []


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((each.asname, each.name) for each in node.names if each.asname)
        elif isinstance(node, ast.ImportFrom):
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)


def _keyword(call: ast.Call, *names: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg in names), None)


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int)  # a file descriptor, not a path


def _is_path(text: str) -> bool:
    return bool(text) and "\0" not in text and len(text) < 4_096 and not text.startswith("/dev/") and text != ":memory:"

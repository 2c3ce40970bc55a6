"""Finds uses of libraries' private members: names with a leading underscore that this project does not define."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

DOCUMENTED = {"os._exit"}
"""Public despite their underscore."""
PRIVATE_TEXT = re.compile(r"_[a-z]+(_[a-z]+)+")
"""A text that names a private attribute, as in `vars(x)["_this_one"]`."""


def foreign_private(trees: Mapping[str, ast.Module], ours: Collection[str]) -> list[str]:
    """Uses of names that begin with one underscore and belong to a library: attributes, imports, overrides.

    `trees`: the modules by name; `ours`: the packages they belong to. A name that any of them defines is ours. An
    override is a method that our code neither calls nor defines a second time.
    """
    defined = Counter(name for tree in trees.values() for name in own_names(tree))
    used = {node.attr for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return [
        f"{name}:{line} {what}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        for line, what in _foreign_in(node, defined, used, ours)
    ]


def _foreign_in(
    node: ast.AST, defined: Counter[str], used: set[str], ours: Collection[str]
) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Attribute) and is_private(node.attr):
        if node.attr not in defined and ast.unparse(node) not in DOCUMENTED:
            yield node.lineno, f".{node.attr}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PRIVATE_TEXT.fullmatch(node.value):
        if node.value not in defined:
            yield node.lineno, repr(node.value)
    elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in ours:
        for name in (*(node.module or "").split("."), *(alias.name for alias in node.names)):
            if is_private(name):
                yield node.lineno, f"import {name}"
    elif isinstance(node, ast.ClassDef) and node.bases:
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        for each in methods:
            undecorated = is_private(each.name) and not each.decorator_list
            if undecorated and defined[each.name] == 1 and _is_override(each, used):
                yield each.lineno, f"def {each.name}"


def _is_override(method: ast.FunctionDef | ast.AsyncFunctionDef, used: set[str]) -> bool:
    """Whether only a library calls a method: our code does not mention it, except perhaps the method itself."""
    within = {node.attr for node in ast.walk(method) if isinstance(node, ast.Attribute)}
    return method.name not in used or (method.name in within and f"super().{method.name}" in ast.unparse(method))


def own_names(tree: ast.AST) -> list[str]:
    """The names that a module defines, once per definition: functions, classes, variables, attributes of `self`."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) in ("self", "cls"):
                names.append(node.attr)
        elif isinstance(node, ast.alias):
            names.append(node.asname or "")
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"

"""Imports point one way, and plans/ is pure: checked on the source, since the workflow sandbox passes plans/ through.

    plans <- runtime <- activities; plans <- workflows; all of them <- client; worker.py never imports client

Each rule has its control: a seeded bad module must be caught.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = {"plans", "runtime", "activities", "workflows", "client", "worker"}
MAY_IMPORT = {
    "plans": {"plans"},
    "runtime": {"plans", "runtime"},
    "activities": {"plans", "runtime", "activities"},
    "workflows": {"plans", "workflows"},
    "client": OURS - {"worker"},
    "worker": OURS - {"client", "worker"},
}
PURE_LIBRARIES = {
    "pydantic",
    "pydantic_core",
    "jmespath",
    "jsonschema",
    "referencing",
    "annotated_types",
    "typing_extensions",
    "xxhash",
    "re2",
}
# fmt: off
PURE_STDLIB = {
    "__future__", "abc", "ast", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "gc", "graphlib", "hashlib", "heapq",
    "html", "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator", "posixpath", "re",
    "shlex", "string", "textwrap", "types", "typing", "unicodedata", "urllib", "uuid", "warnings",
}
# fmt: on
IMPURE_CALLS = {"open", "input", "print", "exec", "eval", "compile", "__import__", "breakpoint", "globals"}
IMPURE_ATTRIBUTES = {
    *(("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")),
    *(("uuid", "uuid1"), ("uuid", "uuid4")),
}
IMPURE_MODULES = {"urllib.request", "uuid.uuid1", "uuid.uuid4"}


def modules(package: str) -> list[Path]:
    single = ROOT / f"{package}.py"
    return [single] if single.exists() else sorted((ROOT / package).rglob("*.py"))


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """The nodes of a module, the module itself first; parsed once for all rules."""
    return tuple(ast.walk(ast.parse(source)))


def imported(source: str) -> Iterator[str]:
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_problems(package: str, source: str) -> list[str]:
    """What a module of a package imports of ours although it must not."""
    names = {name.partition(".")[0] for name in imported(source)} & OURS
    found = [f"{package} must not import {name}" for name in sorted(names - MAY_IMPORT[package])]
    if package != "activities" and any(name.partition(".")[0] == "openai" for name in imported(source)):
        found.append("openai is imported at run time by the worker alone")
    return found


def purity_problems(source: str) -> list[str]:
    """What a module of plans/ does although pure code must not."""
    allowed = PURE_LIBRARIES | PURE_STDLIB | {"plans"}
    found = [
        f"imports {name}"
        for name in imported(source)
        if name.partition(".")[0] not in allowed or name in IMPURE_MODULES
    ]
    for node in nodes(source):
        found += list(_impure_node(node))
    return found + list(_module_state(nodes(source)[0]))


def _impure_node(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
        yield f"line {node.lineno}: calls {node.func.id}"
    if isinstance(node, ast.Attribute) and (_last_name(node.value), node.attr) in IMPURE_ATTRIBUTES:
        yield f"line {node.lineno}: uses {_last_name(node.value)}.{node.attr}"
    if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Global):
        yield f"line {node.lineno}: {type(node).__name__}"


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _module_state(tree: ast.AST) -> Iterator[str]:
    """Module-level collections that are not constants by their name would be state shared between runs."""
    assert isinstance(tree, ast.Module)
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        mutable = isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
        names = [target.id for target in targets if isinstance(target, ast.Name)] if mutable else []
        yield from (f"line {node.lineno}: module state {name}" for name in names if not _is_constant(name))


def _is_constant(name: str) -> bool:
    return name.strip("_").isupper() or name == "__all__"


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_imports_point_one_way(package: str) -> None:
    assert modules(package)
    bad = {str(path): found for path in modules(package) if (found := import_problems(package, path.read_text()))}
    assert not bad


def test_plans_is_pure() -> None:
    bad = {path.name: found for path in modules("plans") if (found := purity_problems(path.read_text()))}
    assert not bad


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("plans", "import temporalio\nfrom activities import files"),
        ("plans", "def f():\n    import client.runs"),
        ("activities", "from workflows.plan import PlanWorkflow"),
        ("workflows", "from client import settings"),
        ("client", "from worker import main"),
        ("client", "import openai"),
        ("runtime", "from activities.tools import files"),
        ("workflows", "from activities.tools.registry import load_tools"),
        ("workflows", "import runtime.settings"),
        ("activities", "from client import runs"),
        ("worker", "from client import runs"),
        ("worker", "import client.cli.main"),
    ],
)
def test_a_seeded_import_against_the_direction_is_caught(package: str, source: str) -> None:
    assert import_problems(package, source)


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import temporalio",
        "from random import choice",
        "from pathlib import Path",
        "import asyncio",
        "import time",
        "def f():\n    import io",
        "def f():\n    return open('x')",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\ndef f():\n    return datetime.datetime.utcnow()",
        "from uuid import UUID\nimport uuid\nx = uuid.uuid4()",
        "async def f(): pass",
        "def f():\n    global x\n    x = 1",
        "seen = {}",
        "cache: list[int] = []",
        "from urllib import request",
    ],
)
def test_a_seeded_impure_module_is_caught(source: str) -> None:
    assert purity_problems(source)


@pytest.mark.parametrize("source", ["from datetime import datetime", "LIMITS = {'a': 1}", "_KINDS = [1]", "x = (1, 2)"])
def test_pure_code_passes(source: str) -> None:
    assert not purity_problems(source)

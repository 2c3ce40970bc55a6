"""plans/ and workflows/ are pure, and what features decide with: checked on the source, since workers run workflows
outside the SDK's sandbox. Who imports whom is in pyproject.toml (`lint-imports`).

Each rule has its control: a seeded bad module must be caught.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = {"plans", "runtime", "activities", "workflows", "client"}
PURE_OF_OURS = {"plans": {"plans"}, "workflows": {"plans", "workflows", "features"}}
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
    "cryptography",
}
# fmt: off
PURE_STDLIB = {
    "__future__", "abc", "ast", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses",
    "datetime", "decimal", "difflib", "enum", "fractions", "functools", "gc", "graphlib", "hashlib", "heapq",
    "html", "ipaddress", "itertools", "json", "keyword", "math", "numbers", "operator", "posixpath", "re",
    "shlex", "string", "textwrap", "types", "typing", "unicodedata", "urllib", "uuid", "warnings",
}
# fmt: on
IMPURE_CALLS = {"open", "input", "print", "exec", "eval", "compile", "__import__", "breakpoint", "globals", "hash"}
IMPURE_ATTRIBUTES = {"now", "utcnow", "today", "uuid1", "uuid4", "run_in_executor"}
"""Of whatever object, as `datetime` may be imported under another name, except of Temporal's `workflow`."""
IMPURE_MODULES = {"urllib.request", "uuid.uuid1", "uuid.uuid4"}
# What a workflow may use besides. The workflow's event loop makes asyncio's clock and tasks deterministic.
WORKFLOW_LIBRARIES = {
    "asyncio",
    "temporalio.api.common.v1",
    "temporalio.common",
    "temporalio.exceptions",
    "temporalio.workflow",
}
# fmt: off
IMPURE_ASYNCIO = {
    "as_completed", "create_subprocess_exec", "create_subprocess_shell", "get_event_loop", "new_event_loop",
    "open_connection", "open_unix_connection", "run", "run_coroutine_threadsafe", "Runner", "start_server",
    "start_unix_server", "to_thread", "wait",
}
# fmt: on
ORDERED_USES = {"list", "tuple", "enumerate", "iter", "reversed", "zip", "map", "filter", "fromkeys", "join", "extend"}
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
ALLOWED = {("workflows/inputs.py", "uses workflow.unsafe.is_replaying")}
"""Impure on purpose, once: a replay asks whether a message was refused the first time, and the first time must not."""
UNORDERED_USES = {"all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum", "update"}


def modules(package: str) -> list[Path]:
    single = ROOT / f"{package}.py"
    return [single] if single.exists() else sorted((ROOT / package).rglob("*.py"))


def pure_modules_of_features() -> list[Path]:
    """The modules of features that decisions are made with: what their sides in pure and workflow code import of them.

    Checked with the rules for workflow code, which allow what a workflow may use besides.
    """
    begins = (
        "*/rules.py",
        "*/in_views.py",
        "*/language.py",
        "*/in_workflow.py",
        "*/in_admission.py",
        "forecast/walk.py",
    )
    open_, found = [each for names in begins for each in ROOT.glob(f"features/{names}")], set[Path]()
    while open_:
        path = open_.pop()
        if path not in found:
            found.add(path)
            named = (ROOT.joinpath(*name.split(".")).with_suffix(".py") for name in imported(path.read_text()))
            open_ += [each for each in named if each.is_relative_to(ROOT / "features") and each.exists()]
    return sorted(found)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """The nodes of a module, the module itself first; parsed once for all rules of a file of tests."""
    return tuple(ast.walk(ast.parse(source)))


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """The trees of all modules take 130 MB, so they do not outlive this file's tests."""
    yield
    nodes.cache_clear()


def imported(source: str) -> Iterator[str]:
    """What a module imports; ours as their paths in the tree, without `plansurvive`."""
    for node in nodes(source):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("plansurvive.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))
            yield from (name.removeprefix("plansurvive.") for name in names if name != "plansurvive")


def purity_problems(source: str, package: str = "plans") -> list[str]:
    """What a module of plans/ or workflows/ does although pure code must not."""
    every = nodes(source)
    allowed = PURE_LIBRARIES | PURE_STDLIB | PURE_OF_OURS[package]
    found = [
        f"imports {name}"
        for name in imported(source)
        if (name.partition(".")[0] not in allowed or name in IMPURE_MODULES)
        and not (package == "workflows" and _is_for_workflows(name))
    ]
    for node in every:
        found += [*_impure_node(node), *_set_order(node)]
        if package != "workflows" and isinstance(node, ast.AsyncFunctionDef | ast.Await):
            found.append(f"line {node.lineno}: {type(node).__name__}")
    return found + [each for node in every for each in _shared_state(node)]


def _is_for_workflows(name: str) -> bool:
    if name == "temporalio" or name.partition(".")[2] in IMPURE_ASYNCIO:
        return name == "temporalio"  # `from temporalio import ...`: what is imported is named by itself as well
    return any(name == each or name.startswith(f"{each}.") for each in WORKFLOW_LIBRARIES)


def _impure_node(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
        yield f"line {node.lineno}: calls {node.func.id}"
    if isinstance(node, ast.Attribute) and node.attr in IMPURE_ATTRIBUTES and last_name(node.value) != "workflow":
        yield f"line {node.lineno}: uses {last_name(node.value)}.{node.attr}"
    if isinstance(node, ast.Attribute) and last_name(node.value) == "asyncio" and node.attr in IMPURE_ASYNCIO:
        yield f"line {node.lineno}: uses asyncio.{node.attr}"
    if isinstance(node, ast.Attribute) and last_name(node.value) == "unsafe" and node.attr != "imports_passed_through":
        yield f"line {node.lineno}: uses {ast.unparse(node)}"
    if isinstance(node, ast.Global):
        yield f"line {node.lineno}: Global"


def _set_order(node: ast.AST) -> Iterator[str]:
    """Where the order of a set of strings, another one in every process, may decide on what follows."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
        return
    own = list(_own_nodes(node))
    sets = _set_names(node, own)
    unordered = {
        id(each)
        for call in own
        if isinstance(call, ast.Call) and last_name(call.func) in UNORDERED_USES
        for each in call.args
    }
    for each in own:
        for place in _ordered_places(each):
            if id(each) not in unordered and _is_set(place, sets):
                yield f"line {place.lineno}: depends on the order of a set: {ast.unparse(place)[:60]}"


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, or of a module, without those of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _own_nodes(child)


def _ordered_places(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions whose elements the node takes one after the other."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        yield node.generators[0].iter
    elif isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Call) and last_name(node.func) in ORDERED_USES:
        yield from (each for each in node.args if not isinstance(each, ast.Starred))


def _set_names(scope: ast.AST, own: list[ast.AST]) -> set[str]:
    """The names that hold a set in a function, as far as its text tells."""
    names: set[str] = set()
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        given = [*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs]
        names |= {each.arg for each in given if each.annotation is not None and _is_set_type(each.annotation)}
    for node in own:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_set_type(node.annotation):
            names.add(node.target.id)
        if isinstance(node, ast.Assign) and _is_set(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _is_set_type(annotation: ast.expr) -> bool:
    return ast.unparse(annotation).partition("[")[0] in ("set", "frozenset", "AbstractSet", "Set")


def _is_set(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return not isinstance(node, ast.Set) or len(node.elts) > 1 or isinstance(node.elts[0], ast.Starred)
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub):
        sides = (node.left, node.right)
        return any(_is_set(side, names) or _is_keys(side) for side in sides)
    if isinstance(node, ast.Call):
        return last_name(node.func) in {"set", "frozenset"} | SET_METHODS
    return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def last_name(node: ast.AST) -> str:
    """The name that an expression ends with: `c` of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _shared_state(scope: ast.AST) -> Iterator[str]:
    """Collections of a module or a class that are not constants by their name would be state shared between runs."""
    for node in scope.body if isinstance(scope, ast.Module | ast.ClassDef) else ():
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        mutable = isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
        names = [target.id for target in targets if isinstance(target, ast.Name)] if mutable else []
        yield from (f"line {node.lineno}: shared state {name}" for name in names if not _is_constant(name))


def _is_constant(name: str) -> bool:
    return name.strip("_").isupper() or name == "__all__"


CONTRACTS: dict[str, tuple[str, str]] = {
    "The core points one way": ("activities/x.py", "from plansurvive.workflows.plan import PlanWorkflow"),
    "Workflow code imports nothing of a process": (
        "workflows/x.py",
        "def f():\n    import plansurvive.runtime.settings",
    ),
    "The core names no feature": ("plans/x.py", "from plansurvive.features.limits.model import Claim"),
    "A feature uses of another one its model at most": (
        "features/notify/x.py",
        "from plansurvive.features.limits.limiter import Limiter",
    ),
    "Nothing but an app names an app": ("features/limits/x.py", "from plansurvive.apps.importers import commands"),
    "An app uses no other app": (
        "apps/codec/x.py",
        "def f():\n    from plansurvive.apps.importers import commands",
    ),
    "A worker process loads nothing of the client": (
        "features/worker_features.py",
        "from plansurvive.client import runs",
    ),
}
"""The contracts of pyproject.toml, each with a module and a line in it that breaks the contract."""


def test_each_import_contract_has_its_control() -> None:
    named = {
        each["name"].partition(":")[0]
        for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    }
    assert named == set(CONTRACTS)


def linted(tree: Path) -> str:
    """What `lint-imports` says of a tree."""
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [program, "--no-cache"],
        cwd=tree,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "400"},
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.sampled
def test_a_seeded_import_against_a_contract_is_caught(tmp_path: Path) -> None:
    for folder in ("plansurvive", *sorted(CORE), "features", "apps"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "static")
        )
    for file in ("worker.py", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path / file)
    for path, line in CONTRACTS.values():
        with (tmp_path / path).open("a") as module:
            module.write(f"\n\n{line}\n")
    said = linted(tmp_path)
    # What breaks a contract stands below its name, so that each is caught by its own.
    places = {name: said.rfind(f"\n{name}") for name in CONTRACTS}
    for name, (path, _) in CONTRACTS.items():
        following = min((each for each in places.values() if each > places[name]), default=len(said))
        seeded = f"plansurvive.{path.removesuffix('.py').replace('/', '.')} -> "
        assert seeded in said[places[name] : following], f"{name}\n{said}"


def test_what_features_decide_with_is_pure() -> None:
    paths = pure_modules_of_features()
    assert {"features/limits/limiter.py", "features/notify/rules.py"} <= {str(each.relative_to(ROOT)) for each in paths}
    found = {str(path.relative_to(ROOT)): purity_problems(path.read_text(), "workflows") for path in paths}
    assert not {path: problems for path, problems in found.items() if problems}
    seeded = (ROOT / "features/notify/rules.py").read_text() + "\nimport time\n"
    assert purity_problems(seeded, "workflows") == ["imports time"]


@pytest.mark.parametrize("package", ["plans", "workflows"])
def test_what_decides_and_what_orders_is_pure(package: str) -> None:
    found = {str(path.relative_to(ROOT)): purity_problems(path.read_text(), package) for path in modules(package)}
    left = {path: [each for each in problems if (path, each.partition(": ")[2]) not in ALLOWED]
            for path, problems in found.items()}  # fmt: skip
    assert not {path: problems for path, problems in left.items() if problems}
    assert sum(map(len, found.values())) - sum(map(len, left.values())) == (package == "workflows")


def test_openai_is_imported_at_run_time_by_the_worker_alone() -> None:
    packages = sorted(CORE - {"activities"} | {"features", "apps"})
    named = {
        path: source for package in packages for path in modules(package) if "openai" in (source := path.read_text())
    }
    assert named, "it is spoken of"
    assert not [
        path for path, source in named.items() if "openai" in {name.partition(".")[0] for name in imported(source)}
    ]
    assert "openai" in {name.partition(".")[0] for name in imported("import openai")}


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
        "class Seen:\n    names: dict[str, int] = {}",
        "from urllib import request",
    ],
)
def test_a_seeded_impure_module_is_caught(source: str) -> None:
    assert purity_problems(source)


@pytest.mark.parametrize(
    "source",
    [
        "import time\nbegan = time.time()",
        "from time import monotonic",
        "from datetime import datetime\ndef f():\n    return datetime.now()",
        "import datetime\nasync def f():\n    return datetime.datetime.now(datetime.UTC)",
        "from datetime import date\nx = date.today()",
        "from datetime import datetime as moment\nx = moment.now()",
        "async def f(loop):\n    await loop.run_in_executor(None, g)",
        "import random\nx = random.random()",
        "import secrets",
        "from uuid import uuid4",
        "import uuid\nx = uuid.uuid4()",
        "import os\nx = os.environ['HOME']",
        "from os import getenv",
        "async def f():\n    return open('x')",
        "from pathlib import Path",
        "import subprocess",
        "import logging",
        "import threading",
        "import httpx",
        "from temporalio.client import Client",
        "from temporalio import activity",
        "import temporalio.worker",
        "import temporalio.workflow, temporalio.activity",
        "import asyncio\nasync def f():\n    await asyncio.to_thread(print)",
        "import asyncio\nasync def f(tasks):\n    await asyncio.wait(tasks)",
        "from asyncio import as_completed",
        "import asyncio\nasync def f():\n    await asyncio.create_subprocess_exec('ls')",
        "from temporalio import workflow\ndef f():\n    with workflow.unsafe.sandbox_unrestricted():\n        pass",
        "async def f():\n    global x\n    x = 1",
        "seen = {}",
        "class Keeper:\n    seen = []",
        "x = hash('a')",
        "async def f(names: set[str]):\n    for name in names:\n        await g(name)",
        "def f(names):\n    return list(set(names))",
    ],
)
def test_a_seeded_impure_workflow_is_caught(source: str) -> None:
    assert purity_problems(source, "workflows")


@pytest.mark.parametrize(
    "line",
    [
        "for x in {a, b}: pass",
        "return [y for y in set(z)]",
        "return {y: 1 for y in {*a, *b}}",
        "return ', '.join(frozenset(y))",
        "return list(y.keys() - z)",
        "return list(a.intersection(b))",
        "return dict.fromkeys(set(y))",
        "return next(iter({a, b}))",
        "return [*{a, b}]",
        "x = {1, 2} | y; return tuple(x)",
        "return [given for _ in {a, b}]",
        "x: set[str] = g(); return enumerate(x)",
        "return ' '.join(y for y in given)",
    ],
)
def test_what_depends_on_the_order_of_a_set_is_caught(line: str) -> None:
    for package in ("plans", "workflows"):
        (problem,) = purity_problems(f"def f(given: frozenset[str]):\n    {line}", package)
        assert "the order of a set" in problem


@pytest.mark.parametrize(
    "line",
    [
        "return sorted(set(y))",
        "return any(y in z for y in {a, b})",
        "return {y for y in {a, b}}",
        "return 1 in given",
        "return len({a, b} & c)",
        "return list(y)",
    ],
)
def test_sets_whose_order_does_not_matter_pass(line: str) -> None:
    assert not purity_problems(f"def f(given: frozenset[str]):\n    {line}")


@pytest.mark.parametrize(
    "source",
    [
        "from datetime import datetime",
        "LIMITS = {'a': 1}",
        "_KINDS = [1]",
        "x = (1, 2)",
    ],
)
def test_pure_code_passes(source: str) -> None:
    assert not purity_problems(source)
    assert not purity_problems(source, "workflows")


@pytest.mark.parametrize(
    "source",
    [
        "from temporalio import workflow\nx = workflow.now()",
        "from temporalio import workflow\nx = workflow.uuid4()",
        "import asyncio\nasync def f():\n    await asyncio.gather(asyncio.create_task(g()))",
        "from temporalio.exceptions import ActivityError",
        "from plansurvive.workflows import timers\nfrom plansurvive.plans.run import Run",
    ],
)
def test_what_a_workflow_needs_passes(source: str) -> None:
    assert not purity_problems(source, "workflows")

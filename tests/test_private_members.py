"""Private members of libraries that we use: all of them are in this table, with the test that notices their end.

A library may change what begins with an underscore in any release. A new use is caught here: write it without, or add a
row that says why that cannot be.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("plans", "runtime", "activities", "workflows", "client", "features", "apps", "worker")
USED = {
    ("runtime/workflow_runner.py", "_workflow_worker"): (
        "temporalio.worker.Worker has no option for how long a workflow may think that keeps the sandbox",
        "tests/workflows/test_workflow_runner.py",
    ),
    ("runtime/workflow_runner.py", "_deadlock_timeout_seconds"): (
        "the limit itself; where it is not found, the SDK's own of two seconds holds",
        "tests/workflows/test_workflow_runner.py",
    ),
    ("runtime/workflow_runner.py", "_workflow_runner"): (
        "the worker's runner, which must know whom to ask for evictions; a plugin has only the worker",
        "tests/chaos/test_early_events.py",
    ),
    ("runtime/service/early_events.py", "_bridge_worker"): (
        "what drops a run from the cache; where it is not found, runs stay, as they do without us",
        "tests/chaos/test_early_events.py",
    ),
    ("features/telemetry/failed_tasks.py", "_bridge_worker"): (
        "what reports that a workflow task failed; where it is not found, none is counted",
        "tests/features/telemetry/test_failed_tasks.py",
    ),
    ("client/end_records.py", "marker_recorded_event_attributes"): (
        "sdk-core's layout of a local activity's marker: plans of older versions have their record there alone",
        "tests/client/test_end_records.py",
    ),
    ("client/cli/terminal/console.py", "_cells"): (
        "rich makes a table's cells readable only (`Column.cells`); the console makes what they hold safe to print",
        "tests/client/cli/test_hostile_output.py",
    ),
    ("runtime/storage.py", "_with_store_context"): (
        "overrides DataConverter's: storage is asked for no context, where none is of use",
        "tests/runtime/test_storage.py",
    ),
    ("runtime/storage.py", "_decode_reference_payload_sequence"): (
        "overrides DataConverter's: what a worker reads for a workflow comes through here, and nothing public does",
        "tests/workflows/test_undecodable.py",
    ),
    ("runtime/storage.py", "_decode_payload_sequence"): (
        "as the one above, for payloads that cannot be decrypted",
        "tests/features/keys/test_on_server.py",
    ),
    ("runtime/storage.py", "_external_retrieve_payload_sequence"): (
        "as the one above, for references to external storage",
        "tests/workflows/test_undecodable.py",
    ),
    ("runtime/storage.py", "_external_store_payload_sequence"): (
        "as the one above, of what is stored: arguments of a local activity need not be",
        "tests/runtime/test_storage.py",
    ),
    ("runtime/storage.py", "_command_aware_visitor"): (
        "tells a message from the result of a command, which must never be replaced",
        "tests/workflows/test_undecodable.py",
    ),
    ("runtime/conversion/visits.py", "_extstore"): (
        "the type of what the SDK's walks through a message return; they are replaced by ones that look first",
        "tests/runtime/test_visits.py",
    ),
    ("runtime/connection.py", "_rpc_call"): (
        "the one method of a connection that the SDK leaves to a subclass; it has no public name",
        "tests/runtime/service/test_connection.py",
    ),
    ("plans/expressions/conditions.py", "FUNCTION_TABLE"): (
        "jmespath does not document how to ask which functions there are",
        "tests/plans/expressions/test_conditions.py",
    ),
    ("runtime/workflow_runner.py", "_re2"): (
        "the compiled module of google-re2, which the sandbox passes through with re2",
        "tests/workflows/test_plan.py",
    ),
    ("runtime/workflow_runner.py", "_cffi_backend"): (
        "the compiled module of cffi, which the sandbox passes through with cryptography",
        "tests/workflows/test_signed.py",
    ),
    ("activities/tracing/tracer.py", "_socket"): (
        "the module below socket, which takes 18 ms to load, in every command's launcher",
        "tests/activities/provenance/test_attribution.py",
    ),
    ("activities/tracing/tracer.py", "_thread"): (
        "the module below threading, which takes 10 ms to load",
        "tests/activities/provenance/test_attribution.py",
    ),
}
"""By file and member: why, and the test that fails when it is gone."""
DOCUMENTED = {"_asdict", "_exit", "_fields", "_replace"}
"""Begins with an underscore and is public all the same: `os._exit`, `ast.AST._fields`."""
LAYOUTS = {"marker_recorded_event_attributes", "FUNCTION_TABLE"}
"""Without an underscore, but undocumented: the first holds what is private to the SDK's core."""


def sources() -> dict[str, list[ast.AST]]:
    """The nodes of each module, itself first: one walk through all of the code takes seconds."""
    files = [path for name in OURS for path in [ROOT / f"{name}.py", *(ROOT / name).rglob("*.py")] if path.is_file()]
    return {path.relative_to(ROOT).as_posix(): nodes_of(path.read_text()) for path in files}


def nodes_of(source: str) -> list[ast.AST]:
    return [*ast.walk(ast.parse(source))]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name.strip("_").isidentifier()


def defined(modules: Iterable[list[ast.AST]]) -> set[str]:
    """The private names that are our own: functions, classes, variables, and attributes that we assign."""
    names: set[str] = set()
    for node in chain.from_iterable(modules):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name)
    return {name for name in names if is_private(name)}


def classes_of(modules: Iterable[list[ast.AST]]) -> set[str]:
    """The names of our classes."""
    return {node.name for node in chain.from_iterable(modules) if isinstance(node, ast.ClassDef)}


def foreign(module: list[ast.AST], own: set[str], classes: set[str]) -> Iterator[str]:
    """The private members in a module that are none of ours. `classes`: the names of our classes."""
    texts = {id(node.value) for node in module if isinstance(node, ast.Expr)}
    for node in module:
        if isinstance(node, ast.Attribute):
            if node.attr in LAYOUTS or (is_private(node.attr) and node.attr not in own and node.attr not in DOCUMENTED):
                yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
            if is_private(node.value) and not node.value.endswith("_") and node.value not in own:
                yield node.value
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] != "plansurvive":
            parts = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (part for part in parts if is_private(part))
        elif isinstance(node, ast.Import):
            yield from (part for alias in node.names for part in alias.name.split(".") if is_private(part))
        elif isinstance(node, ast.ClassDef) and not any(_last(base) in classes for base in node.bases):
            yield from _of_the_library_above(node)


def may_override(module: list[ast.AST]) -> bool:
    """Whether a module has a class with a base and a private method: no other one has to be imported."""
    return any(
        isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and is_private(each.name)
        for node in _body(module)
        if isinstance(node, ast.ClassDef) and node.bases
        for each in node.body
    )


def _body(module: list[ast.AST]) -> list[ast.stmt]:
    return module[0].body if isinstance(module[0], ast.Module) else []


def overridden(imported: ModuleType, module: list[ast.AST]) -> Iterator[str]:
    """The private methods of a module's classes that a base class of a library has as well."""
    for node in _body(module):
        found = vars(imported).get(node.name) if isinstance(node, ast.ClassDef) else None
        if isinstance(node, ast.ClassDef) and isinstance(found, type):
            above = found.__mro__[1:]
            bases = [base for base in above if base.__module__.partition(".")[0] not in ("plansurvive", "seeded")]
            methods = [each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield from (name for name in methods if is_private(name) and any(name in vars(base) for base in bases))


def _of_the_library_above(node: ast.ClassDef) -> Iterator[str]:
    """What a class whose bases are all of libraries asks its `super()` for."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and is_private(inner.attr) and _is_super(inner.value):
            yield inner.attr


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last(node.func) == "super"


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.slow
@pytest.mark.sampled
def test_the_private_members_in_use_are_those_of_the_table() -> None:
    modules = sources()  # in here: they take 160 MB, in each process of the tests for as long as it runs
    own, classes = defined(modules.values()), classes_of(modules.values())
    found = {(file, member) for file, module in modules.items() for member in foreign(module, own, classes)}
    for file, module in modules.items():
        if may_override(module) and not file.endswith("__main__.py"):
            name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            imported = importlib.import_module(f"plansurvive.{name}")
            found |= {(file, member) for member in overridden(imported, module)}
    assert sorted(found) == sorted(USED)


@pytest.mark.parametrize("use", USED, ids=lambda use: use[1])
def test_every_row_says_why_and_names_a_test_that_is_there(use: tuple[str, str]) -> None:
    reason, test = USED[use]
    assert reason
    assert (ROOT / test).is_file()


@pytest.mark.parametrize(
    "source",
    [
        "import textual\ndef f(app): return app._driver",
        "class Ours(Server):\n    async def f(self): return await super()._make_app()",
        "class Ours(Server):\n    def _make_app(self): return super()._make_app()",
        "class Ours(Server):\n    def f(self): return self._process_messages()",
        "def f(worker): return getattr(worker, '_workflow_worker')",
        "def f(worker): return vars(worker)['_config']",
        "from temporalio.worker._workflow import _WorkflowWorker",
        "import temporalio.client._impl",
        "def f(event): return event.marker_recorded_event_attributes.details",
    ],
)
def test_a_seeded_use_is_caught(source: str) -> None:
    module = nodes_of(source)
    assert list(foreign(module, defined([module]), classes_of([module])))


def test_a_seeded_override_is_caught() -> None:
    source = "import string\nclass Ours(string.Formatter):\n    def _vformat(self): return ''"
    module = ModuleType("seeded")
    exec(source, vars(module))
    assert may_override(nodes_of(source))
    assert list(overridden(module, nodes_of(source))) == ["_vformat"]
    own = "class Ours:\n    def _vformat(self): return ''\nclass More(Ours):\n    def _vformat(self): return 'x'"
    exec(own, vars(module))
    assert not list(overridden(module, nodes_of(own)))


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos._exit(0)",
        "class Ours:\n    def __init__(self): self._x = 1\ndef f(ours): return ours._x",
        '"""A docstring."""\n_NAME = "name"\nprint(_NAME.__class__)',
    ],
)
def test_what_is_our_own_or_documented_passes(source: str) -> None:
    module = nodes_of(source)
    assert not list(foreign(module, defined([module]), set()))

"""The limits the code keeps to, checked on the source: short files, short functions, one tree of errors.

Each rule has its control: a seeded breach must be caught.
"""

from __future__ import annotations

import ast

import pytest

from tests.test_imports import MAY_IMPORT, ROOT, modules

FILE_LINES = 300
FUNCTION_LINES = 40
SOURCES = [path for package in sorted(MAY_IMPORT) for path in modules(package)]


def length_problems(source: str) -> list[str]:
    """What is too long in a module."""
    lines = len(source.splitlines())
    found = [f"{lines} lines; {FILE_LINES} are allowed"] if lines > FILE_LINES else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{node.name} has {length} lines; {FUNCTION_LINES} are allowed")
    return found


def undrawn_errors(sources: list[str], drawn: str) -> set[str]:
    """The exceptions of the project that are missing where its tree of errors is drawn."""
    bases = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    }
    ours = {"PlanError"}
    while more := {name for name, parents in bases.items() if parents & ours} - ours:
        ours |= more
    return ours - set(drawn.split())


def test_files_and_functions_stay_short() -> None:
    assert SOURCES
    assert not {str(path.relative_to(ROOT)): found for path in SOURCES if (found := length_problems(path.read_text()))}


def test_every_error_stands_in_the_tree() -> None:
    trees = [ast.parse((ROOT / package / "errors.py").read_text()) for package in ("plans", "client")]
    drawn = "\n".join(ast.get_docstring(tree) or "" for tree in trees)
    assert not undrawn_errors([path.read_text() for path in SOURCES], drawn)


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n" * (FILE_LINES + 1),
        "def f():\n" + "    x = 1\n" * FUNCTION_LINES,
        "class A:\n    async def f(self):\n" + "        x = 1\n" * FUNCTION_LINES,
    ],
)
def test_what_is_too_long_is_caught(source: str) -> None:
    assert length_problems(source)


def test_the_longest_that_is_allowed_passes() -> None:
    assert not length_problems("def f():\n" + "    x = 1\n" * (FUNCTION_LINES - 1) + "x = 1\n" * (FILE_LINES - 40))


def test_an_error_that_is_not_drawn_is_caught() -> None:
    sources = ["class Lost(Drawn): ...", "class Drawn(PlanError): ..."]
    assert undrawn_errors(sources, "PlanError\n└── Drawn  its sentence") == {"Lost"}

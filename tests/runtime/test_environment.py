"""Settings come from the environment in one place: no other code decides by a variable that it looks up itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCES = [ROOT / "worker.py"]
FOLDERS = ("plans", "runtime", "activities", "workflows", "features")
SOURCES += [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
SEARCHED = {"PATH"}
"""Where programs are looked for is the system's to say."""


def variables_read(source: str) -> Iterator[str]:
    """The names of variables that a module looks up in the process's own environment."""
    for node in ast.walk(ast.parse(source)):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            key = node.slice
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "os.environ":
            key = node.left
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv", "os.environ.pop"):
            key = node.args[0]
        if key is not None:
            yield str(key.value) if isinstance(key, ast.Constant) else ast.unparse(key)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_production_code_looks_up_a_variable_of_its_own(path: Path) -> None:
    assert set(variables_read(path.read_text(encoding="utf-8"))) <= SEARCHED


@pytest.mark.parametrize(
    "breach",
    [
        'import os\nif os.environ.get("CRASH_AT"): pass',
        'import os\nat = os.environ["CRASH_AT"]',
        'import os\nat = os.getenv("CRASH_AT")',
        'import os\nis_set = "CRASH_AT" in os.environ',
    ],
)
def test_a_variable_looked_up_is_found(breach: str) -> None:
    assert list(variables_read(breach)) == ["CRASH_AT"]

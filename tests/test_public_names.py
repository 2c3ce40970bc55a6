"""What users import: names of `plansurvive` itself, in everything that they read or copy."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import plansurvive

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^( *)```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FILES = [*sorted((ROOT / "examples").rglob("*.py")), *sorted((ROOT / "client/first_project/files").rglob("*.py.txt"))]


def shown() -> list[tuple[str, str]]:
    """Each program that users read, with its place."""
    blocks = [(page.name, textwrap.dedent(text)) for page in _PAGES for _, text in _BLOCK.findall(page.read_text())]
    return blocks + [(path.name, path.read_text()) for path in _FILES]


def test_what_users_read_imports_public_names_only() -> None:
    found = {name for _, text in shown() for name in _imported(text)}
    assert found <= set(plansurvive.__all__)
    assert {"tool", "ToolContext", "PlansPlugin", "PlanTester"} <= found, "they are looked for where they are used"


@pytest.mark.parametrize("name", plansurvive.__all__)
def test_each_public_name_is_there_and_has_a_docstring(name: str) -> None:
    assert getattr(plansurvive, name).__doc__
    assert name in dir(plansurvive)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tools'"):
        _ = plansurvive.tools  # type: ignore[attr-defined]


def test_a_public_name_loads_no_more_than_it_needs() -> None:
    """A worker loads tools of users, and nothing of the client with them."""
    program = "import sys; from plansurvive import ToolError, tool; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "plansurvive.activities.tools.tool" in loaded
    assert not [name for name in loaded if name.startswith(("plansurvive.client", "plansurvive.apps", "temporalio"))]


def _imported(text: str) -> list[str]:
    """The names that a program imports from us; of a module below ours, its whole name."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "plansurvive":
            names += [each.name for each in node.names] if node.module == "plansurvive" else [str(node.module)]
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names if each.name.startswith("plansurvive.")]
    return names

"""A copy of the tree with another workflow: what a deployment brings while plans run.

Plans that began before replay as they were, as what is new is behind `workflow.patched`; the control leaves that out.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.kit.trees import copy_code

ROOT = Path(__file__).resolve().parents[3]
CODE = (
    *("plansurvive", "plans", "runtime", "activities", "workflows", "features", "worker.py"),
    *("tests/chaos", "tests/activities"),
)
MODULE, CLASS = Path("workflows/plan.py"), "PlanWorkflow"
FIRST, LAST = "_execute", "_summarize"
"""Methods that can have something new at their beginning. Directly after a local activity `patched` fails on replay, if
a query ended its workflow task early (docs/temporal.md): so in a storm, with people looking, it is the last one.
"""
NEW = 'await workflow.sleep(0.05, summary="of the new code")'


def deploy(folder: Path, *, is_patched: bool = True, method: str = LAST) -> Path:
    """Write the new code into a directory that does not exist yet; returns it."""
    copy_code(CODE, folder)
    path = folder / MODULE
    path.write_text(changed(path.read_text(), is_patched=is_patched, method=method))
    return folder


def changed(source: str, *, is_patched: bool, method: str = LAST) -> str:
    """The workflow with a timer more at the beginning of a method."""
    line = _first_line(source, method)
    lines = source.splitlines(keepends=True)
    added = [f'if workflow.patched("chaos"):\n            {NEW}'] if is_patched else [NEW]
    return "".join([*lines[: line - 1], *(f"        {text}\n" for text in added), *lines[line - 1 :]])


def _first_line(source: str, name: str) -> int:
    """Number of the line with the first statement of the method, after its docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == CLASS:
            for method in node.body:
                if isinstance(method, ast.AsyncFunctionDef) and method.name == name:
                    first = method.body[0]
                    is_said = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                    return method.body[is_said].lineno
    raise LookupError(f"{MODULE} has no {CLASS}.{name}")

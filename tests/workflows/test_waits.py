"""Workflows wait alike on every version of Python."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ALONE = {"features/limits/in_workflow.py", "features/notify/notifier.py", "workflows/keeper.py", "workflows/waits.py"}
"""Workflows in which only one part waits for a time, so that none can come before it; and what the others use."""


def test_runs_wait_for_a_time_alike_on_every_version_of_python() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("workflows", "features")
        for path in (ROOT / folder).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "wait_condition"
        if any(each.arg == "timeout" for each in call.keywords)
    }
    assert found == ALONE

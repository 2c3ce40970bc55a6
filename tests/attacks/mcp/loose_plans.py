"""Plans that try to run a step which needs approval without anybody asked: one way each, each with a file of its own.

Whether a step ran is seen from outside: its file is gone, or says something else.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plansurvive.features.templates.find import project_store

Plan = dict[str, Any]
KEPT = "kept"
AT_ONCE = {"timeout": 0.1, "onTimeout": "approve"}
"""An approval that time gives."""
CLOCK = {"id": "clock", "tool": "sleep", "args": {"seconds": 1}}
"""Ends after the time in which the others would have run."""


def gone(file: str, **more: Any) -> Plan:
    """A step that deletes a file, which needs approval."""
    return {"id": "gone", "tool": "delete_file", "args": {"path": file}, **more}


def replaced(file: str, **more: Any) -> Plan:
    """A step that replaces a file which this run has not read, which needs approval."""
    return {"id": "gone", "tool": "write_file", "args": {"path": file, "content": "replaced"}, **more}


def _steps(*steps: Plan) -> Plan:
    return {"steps": [*steps, CLOCK]}


def _saved(file: str) -> str:
    return Path(file).stem


def _child(file: str, template: str) -> Plan:
    del file
    return _steps({"id": "child", "tool": "plan", "args": {"template": template}})


WAIVED: dict[str, Callable[[str], Plan]] = {
    "a step that waives": lambda file: _steps(gone(file, requiresApproval=False)),
    "a step that time approves": lambda file: _steps(gone(file, approval=AT_ONCE)),
    "a default that time approves": lambda file: {**_steps(gone(file)), "defaults": {"approval": AT_ONCE}},
    "files that it owns": lambda file: {**_steps(replaced(file)), "owns": ["**"]},
    "a block": lambda file: _steps({"id": "block", "steps": [gone(file, requiresApproval=False)]}),
    "items": lambda file: _steps(
        {**gone("{{each}}", requiresApproval=False), "forEach": {"items": [file], "as": "each"}}
    ),
    "the end of a plan": lambda file: {**_steps(), "finally": [gone(file, requiresApproval=False)]},
    "the end of a block": lambda file: _steps(
        {"id": "block", "steps": [CLOCK | {"id": "in"}], "finally": [gone(file, requiresApproval=False)]}
    ),
    "what follows a failure": lambda file: _steps(
        {
            "id": "read", "tool": "read_file", "args": {"path": "missing"}, "retry": {"attempts": 1},
            "catch": [{"codes": ["NOT_FOUND"], "steps": [gone(file, requiresApproval=False)]}],
        }
    ),
    "a child plan": lambda file: _steps(
        {"id": "child", "tool": "plan", "args": {"steps": [gone(file, requiresApproval=False)]}}
    ),
    "a child that time approves": lambda file: _steps(
        {"id": "child", "tool": "plan", "args": {"steps": [gone(file, approval=AT_ONCE)]}}
    ),
    "a saved plan as a child": lambda file: _child(file, _saved(file)),
}  # fmt: skip
"""By name, plans that a person who starts them is not asked about: the control. Saved plans are saved first."""

ASKING = "a step that asks"
"""The plan that waives nothing."""


def save(workspace: Path, file: str) -> str:
    """Save a plan that waives, under the file's name; returns its version."""
    text = json.dumps(_steps(gone(file, requiresApproval=False)))
    version, _ = project_store(workspace).save(_saved(file), text, "what it is for")
    return version


def put(workspace: Path, name: str) -> str:
    """A file that a plan would do away with; returns its name."""
    (workspace / name).write_text(KEPT)
    return name


def ran(workspace: Path, names: list[str]) -> list[str]:
    """The files that are not as they were put: the steps that ran."""
    return [name for name in names if not (workspace / name).exists() or (workspace / name).read_text() != KEPT]

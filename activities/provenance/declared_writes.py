"""Paths a call writes according to the text of its command or program; see `activities.provenance.shell_writes`."""

from __future__ import annotations

from typing import Any

from plansurvive.activities.provenance.shell_writes import written_by_shell
from plansurvive.activities.workspace.file_names import visible
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.errors import ToolError
from plansurvive.plans.files.python_writes import written_by_python

MAX_NAMED = 200


def named_by(tool: str, args: dict[str, Any], workspace: Workspace) -> list[str]:
    """Paths written, relative to the workspace; those outside it are omitted."""
    found: dict[str, None] = {}
    for path in _texts(tool, args)[:MAX_NAMED]:
        try:
            found.setdefault(workspace.relative(visible(path)))
        except ToolError:
            continue
    found.pop(".", None)
    return list(found)


def _texts(tool: str, args: dict[str, Any]) -> list[str]:
    if tool == "run_command" and isinstance(args.get("command"), str):
        folder = args.get("cwd") or "."
        return [path if path.startswith("/") else f"{folder}/{path}" for path in written_by_shell(args["command"])]
    if tool == "run_python" and isinstance(args.get("code"), str):
        found = written_by_python(args["code"])
        return [*found.paths, *written_by_shell(*found.commands)]
    return []

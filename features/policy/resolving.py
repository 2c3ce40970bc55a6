"""Which arguments of a tool are paths, where these lead, and which argument is a shell command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plansurvive.plans.model import ToolSpec

PATHS = ("path", "cwd")
"""Arguments that the built-in tools open below the workspace; a tool of one's own that has them opens them so, too."""


@dataclass(frozen=True)
class Shape:
    """What of a tool's arguments matters, found once for a tool."""

    spec: ToolSpec
    command: str
    """The argument that is a shell command; empty: there is none."""
    paths: tuple[str, ...]
    """Those that name a place in the workspace, if they are given."""

    @classmethod
    def of(cls, spec: ToolSpec) -> Shape:
        """That of a tool."""
        known = spec.args_schema.get("properties", {})
        return cls(spec, command_of(spec), tuple(name for name in PATHS if name in known))


def path_arguments(spec: ToolSpec, args: Mapping[str, Any]) -> list[str]:
    """The arguments that are given and name a place in the workspace."""
    known = spec.args_schema.get("properties", {})
    return [name for name in PATHS if name in known and isinstance(args.get(name), str)]


def command_of(spec: ToolSpec) -> str:
    """The argument that is a shell command; empty if the tool has none."""
    return next((name for name, language in spec.quoting.items() if language == "shell"), "")


def real_path(root: str, text: str) -> str | None:
    """The path after links, relative to the workspace; None: it is outside, or is none.

    `..` is resolved before links, as the tools do it.
    """
    try:
        top = os.path.realpath(root)
        real = os.path.realpath(os.path.normpath(Path(root, text)))
    except (OSError, ValueError):  # ValueError: NUL
        return None
    is_below = real == top or real.startswith(top.rstrip("/") + "/")
    return os.path.relpath(real, top) if is_below else None

"""Validates path texts. Pure text: never touches the file system.

A path is relative to the workspace, or absolute and inside it. `.` and `..` are resolved before the file system sees
the path, so the recorded path is the opened one. A path that climbs above the workspace is refused (PATH_OUTSIDE), and
so is one that cannot be a file name (PATH_INVALID). Links are resolved in `activities.workspace.workspace`.
"""

from __future__ import annotations

import os
import unicodedata

from plansurvive.activities.workspace.file_names import canonical, is_shown_as_bytes, native, visible
from plansurvive.plans.definition.checks.outside import FOREIGN
from plansurvive.plans.errors import ToolError

MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4_095

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def parts_of(path: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """The components of `path` from the workspace down, as texts of `activities.workspace.file_names`.

    Empty for the workspace itself. `roots`: the absolute spellings of the workspace. Raises ToolError PATH_OUTSIDE or
    PATH_INVALID.
    """
    _check_text(path)
    path = canonical(path)
    if FOREIGN.match(path):
        raise outside(path)
    parts = _below(path, roots) if path.startswith("/") else path.split("/")
    names: list[str] = []
    for name in parts:
        if name == "..":
            if not names:
                raise outside(path)
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return tuple(names)


def file_parts_of(path: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """As `parts_of`, but the path must be below the workspace and have no trailing slash."""
    parts = parts_of(path, roots)
    if not parts or path.endswith(("/", "/.")):
        raise ToolError("PATH_INVALID", f"{shown(path)} names a directory; give the path of a file in the workspace")
    return parts


def check_new_name(name: str) -> None:
    """Raise ToolError PATH_INVALID for a misleading name: control or bidirectional characters, spaces at its ends.

    A new name must be UTF-8, too. `name` is that of the operating system.
    """
    if is_shown_as_bytes(name):
        raise ToolError("PATH_INVALID", f"{shown(visible(name))} has bytes that are not UTF-8; choose a plain name")
    if name != name.strip() or any(char in _BIDI or unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in name):
        raise ToolError(
            "PATH_INVALID",
            f"{shown(name)} begins or ends with a space, or has control or direction characters; choose a plain name",
        )


def outside(path: str) -> ToolError:
    """The error for a path that leaves the workspace, directly or by a link."""
    return ToolError("PATH_OUTSIDE", f"{shown(path)} is outside the workspace; give a path relative to the workspace")


def shown(path: str) -> str:
    """A path for messages: quoted, truncated, invisible characters escaped."""
    text = path if len(path) <= 300 else path[:200] + "..." + path[-80:]
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return f"'{escaped}'"


def _check_text(path: str) -> None:
    problem = ""
    if not path.strip():
        problem = "is empty"
    elif "\0" in path:
        problem = "contains a NUL character"
    elif any("\ud800" <= char <= "\udfff" for char in path):
        problem = "is not valid Unicode"
    elif len(_bytes(path)) > MAX_PATH_BYTES:
        problem = f"is longer than {MAX_PATH_BYTES} bytes"
    elif any(len(_bytes(name)) > MAX_NAME_BYTES for name in path.split("/")):
        problem = f"has a name longer than {MAX_NAME_BYTES} bytes"
    if problem:
        raise ToolError("PATH_INVALID", f"the path {shown(path)} {problem}; give a path inside the workspace")


def _bytes(text: str) -> bytes:
    return os.fsencode(native(text))


def _below(path: str, roots: tuple[str, ...]) -> list[str]:
    """The part of an absolute path below the workspace, compared by component, never by text prefix."""
    names = [name for name in path.split("/") if name not in ("", ".")]
    for root in roots:
        top = [visible(name) for name in root.split("/") if name]
        if names[: len(top)] == top:
            return names[len(top) :]
    raise outside(path)

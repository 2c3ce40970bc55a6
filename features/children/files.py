"""The files of a child plan, as its parent names them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any


def placed(found: Mapping[str, Any], workspace: str, parent: str) -> dict[str, Any]:
    """The files of a child's result, as the parent names them: relative to its own workspace.

    Files outside, in another directory that the parent was granted, keep their absolute path, and have no stamp.
    """
    names = ("wrote", "deleted", "shared", "sharedWith", "moreFiles")
    files: dict[str, Any] = {name: found[name] for name in names if name in found}
    if workspace == parent or not workspace:
        return files
    for name in ("deleted", "shared"):
        files[name] = [_place(path, workspace, parent) for path in files.get(name, [])]
    wrote = {_place(path, workspace, parent): stamp for path, stamp in files.get("wrote", {}).items()}
    return files | {"wrote": {path: None if path.startswith("/") else stamp for path, stamp in wrote.items()}}


def _place(path: str, workspace: str, parent: str) -> str:
    whole = posixpath.join(workspace, path)
    return whole.removeprefix(parent.rstrip("/") + "/")

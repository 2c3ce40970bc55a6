"""What tells one version of a tool from another: the version it declares, or a hash of its code.

The code of a tool is its module, and the modules beside it that this one uses, at any depth: other packages count by
what the tool declares. It is hashed when the worker starts, since that is the code that runs, whatever the files say
later.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from plansurvive.activities.tools.tool import Tool

MAX_MODULES = 500


def identity(tool: Tool) -> tuple[str, ...]:
    """Name, schema and version of a tool; empty if its code cannot be distinguished from other code."""
    spec = tool.spec
    if spec.server:
        return (spec.name, spec.server, spec.definition) if spec.definition else ()
    said = f"version {spec.version}" if spec.version else _code(tool.function)
    return (spec.name, json.dumps(spec.args_schema, sort_keys=True), said) if said else ()


def _code(function: Any) -> str:
    """Hash of the files of a function's module and of the modules below the same directory that it uses; or empty."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    file = _file(module) if module is not None else None
    if module is None or file is None:
        return ""
    hasher = hashlib.sha256(f"{getattr(function, '__qualname__', '')}\0".encode())
    try:
        for path in sorted({found for each in _used_by(module, file.parent) if (found := _file(each))}):
            data = path.read_bytes()
            hasher.update(f"{path.relative_to(file.parent)}\0{len(data)}\0".encode() + data)
    except OSError:
        return ""
    return hasher.hexdigest()


def _used_by(module: ModuleType, top: Path) -> Iterator[ModuleType]:
    """A module, and those below a directory whose names, functions or classes it has, at any depth."""
    found, waiting = {module.__name__}, [module]
    while waiting and len(found) < MAX_MODULES:
        now = waiting.pop()
        yield now
        for value in list(vars(now).values()):
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            other = sys.modules.get(name) if isinstance(name, str) and name not in found else None
            if other is not None and (file := _file(other)) and file.is_relative_to(top):
                found.add(other.__name__)
                waiting.append(other)


def _file(module: ModuleType) -> Path | None:
    name = getattr(module, "__file__", None)
    return Path(name) if name and name.endswith(".py") and Path(name).is_file() else None

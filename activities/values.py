"""Values too large for history, kept in files named by the hash of their content.

What is stored never changes: the same value has the same name, a file is complete as soon as it has its name, and
reading proves it by the hash. Blocking; call it from a thread. Every worker of a task queue must see the same
directory.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from plans.calls import PREVIEW_CHARACTERS, LargeValue
from plans.errors import ToolError

INLINE_BYTES = 8_192
"""Longest JSON text of a value that stays in history."""
MAX_BYTES = 64 * 1024 * 1024
"""Longest JSON text of a value that is kept at all."""


class ValueStore:
    """A directory of values, for those whose JSON text is longer than `inline_bytes`."""

    def __init__(self, directory: Path | str, inline_bytes: int = INLINE_BYTES) -> None:
        self.directory = Path(directory)
        self.inline_bytes = inline_bytes

    def put(self, json_text: str) -> LargeValue:
        """Keep a JSON text; the same text twice is one file. Raises OSError when it cannot be written."""
        data = json_text.encode()
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, data)
        return LargeValue(sha256=digest, bytes=len(data), preview=json_text[:PREVIEW_CHARACTERS])

    def get(self, large: LargeValue) -> Any:
        """The value. Raises ToolError VALUE_MISSING or VALUE_CORRUPT."""
        path = self._path(large.sha256)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ToolError(
                "VALUE_MISSING",
                f"the stored value {large.sha256[:12]} is not in {self.directory}; all workers must share one state"
                " directory; restore it, or run the step that made the value again",
            ) from None
        if hashlib.sha256(data).hexdigest() != large.sha256:
            raise ToolError(
                "VALUE_CORRUPT",
                f"the stored value {path} no longer has the content it is named after; remove the file and run the"
                " step that made the value again",
            )
        return json.loads(data)

    def _path(self, digest: str) -> Path:
        return self.directory / digest[:2] / f"{digest[2:]}.json"


def _write(path: Path, data: bytes) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")  # mode 0600
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)

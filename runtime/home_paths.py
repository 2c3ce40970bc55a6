"""Paths that people write, in files and options, where `~` stands for a home."""

from __future__ import annotations

import os
from pathlib import Path


def home_path(written: str | Path) -> Path:
    """The path with `~` or `~USER` filled in.

    Where there is no such user the path stays as it is written, and is then not found: `Path.expanduser` raises
    RuntimeError, which no reader of a file expects.
    """
    return Path(os.path.expanduser(written))  # noqa: PTH111

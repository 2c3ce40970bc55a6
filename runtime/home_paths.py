"""Paths and programs that people write, in files and options, where `~` stands for a home."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def home_path(written: str | Path) -> Path:
    """The path with `~` or `~USER` filled in.

    Where there is no such user the path stays as it is written, and is then not found: `Path.expanduser` raises
    RuntimeError, which no reader of a file expects.
    """
    return Path(os.path.expanduser(written))  # noqa: PTH111


def program(written: str) -> str:
    """The program of that name on the PATH, or at that absolute path. Raises ValueError: there is none, and why not."""
    path = home_path(written)
    found = str(path) if path.is_absolute() else shutil.which(written) if "/" not in written else None
    if found is None or not os.access(found, os.X_OK):
        first, *rest = written.split()
        if rest and "/" not in first:
            raise ValueError(f"`{written}` is not a program: `command` names the program, {first}, and `args` the rest")
        where = "is not on the worker's PATH" if "/" not in written else "is not a program with an absolute path"
        raise ValueError(f"`{written}` {where}; install it, or name its whole path in `command`")
    return found

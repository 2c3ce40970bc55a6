"""Copies of the project's code, for tests that change a part of it or leave it out.

A copy keeps what Python has compiled: a module is compiled again only where its size or time differs, and compiling all
of them takes longer than most of these tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNFINISHED = "*.pyc.*"
"""A compiled module while another process writes it: by the time it is copied it may have its final name."""


def copy_code(names: Iterable[str], target: Path) -> None:
    """Copy these files and folders of the project into a directory."""
    for name in names:
        source, place = ROOT / name, target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, symlinks=True, ignore=shutil.ignore_patterns(UNFINISHED))
        else:
            shutil.copy2(source, place)

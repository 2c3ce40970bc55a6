"""The directories whose plan files the page, or an agent, may read, and below which they may choose a workspace.

They are named when the page or the agents' server is started: PLANS_WORKSPACE, else the current directory,
and each of PLANS_WORKSPACES. A path that leads out of them, also by a link, is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plansurvive.client.plan_file import is_directory, missing
from plansurvive.plans.definition.parsing import MAX_BYTES
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.settings import Settings

ENDINGS = (".yaml", ".yml", ".json")
MAX_FILES = 200
"""Plan files that are listed of one root."""
MAX_LOOKED_AT = 5_000
"""Files that are looked at for that."""
DEPTH = 2
"""Levels of folders in which plan files are looked for."""
HEAD = 65_536
"""Bytes in which a plan file has the word `steps`."""
_STEPS = re.compile(rb"^([\"']?)steps\1\s*:", re.MULTILINE)
_LEFT_OUT = frozenset(("node_modules", "venv", "__pycache__", "target", "dist", "build"))


class OutsideRoots(PlanError):
    """A path that the page, or an agent, may not use."""

    code = "OUTSIDE_ROOTS"


@dataclass(frozen=True)
class Listed:
    """A plan file that can be started."""

    path: Path
    name: str
    """Relative to its root."""
    root: Path


@dataclass(frozen=True)
class Roots:
    """The directories of one served page or agents' server; the first is where its templates are."""

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, settings: Settings) -> Roots:
        """Those that the settings name."""
        named = [settings.workspace or Path.cwd(), *map(Path, settings.workspaces)]
        return cls(tuple(dict.fromkeys(each.resolve() for each in named)))

    def file(self, text: str) -> Path:
        """The plan file that a text names. Raises OutsideRoots, and PlanFileError if there is no file."""
        found = self._inside(text)
        if found.is_dir():
            raise is_directory(found)
        if not found.exists():
            raise missing(found)
        if found.suffix.lower() not in ENDINGS or not found.is_file():
            raise OutsideRoots(f"{text[:200]!r} is not a plan file: the name of one ends in {' or '.join(ENDINGS)}")
        return found

    def workspace(self, text: str) -> str | None:
        """The directory that a text names; None for none, which leaves it to the plan.

        Raises OutsideRoots, PlanError BAD_WORKSPACE.
        """
        if not text.strip():
            return None
        found = self._inside(text.strip())
        if not found.is_dir():
            raise PlanError(f"{text[:200]!r} is not a directory; create it or choose another", "BAD_WORKSPACE")
        return str(found)

    def files(self) -> list[Listed]:
        """The plan files of all roots, by name."""
        return [each for root in self.paths for each in _files(root)]

    def _inside(self, text: str) -> Path:
        given = Path(text)
        try:
            found = (given if given.is_absolute() else self.paths[0] / given).resolve()
        except (OSError, ValueError, RuntimeError):
            raise OutsideRoots(f"{text[:200]!r} is not a path") from None
        if not any(found == root or root in found.parents for root in self.paths):
            places = ", ".join(str(root) for root in self.paths)
            raise OutsideRoots(f"{text[:200]!r} is not below {places}; choose a path that is")
        return found


def _files(root: Path) -> list[Listed]:
    found: list[Listed] = []
    for number, path in enumerate(_walk(root, DEPTH)):
        if number >= MAX_LOOKED_AT or len(found) >= MAX_FILES:
            break
        if _is_plan(path):
            found.append(Listed(path, path.relative_to(root).as_posix(), root))
    return sorted(found, key=lambda each: (each.name.count("/"), each.name))


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """Files that may be plans, those of the folder before those below it; links are not followed."""
    folders: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda each: each.name):
            if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
            elif entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(ENDINGS):
                yield Path(entry.path)
    for each in folders if depth else ():
        yield from _walk(each, depth - 1)


def _is_plan(path: Path) -> bool:
    """Whether a file looks like a plan: it is small enough, and has `steps` at its top, not inside something else."""
    with suppress(OSError):
        if path.stat().st_size <= MAX_BYTES:
            with path.open("rb") as file:
                head = file.read(HEAD)
            return bool(_STEPS.search(head)) or (b'"steps"' in head and head.lstrip()[:1] == b"{")
    return False

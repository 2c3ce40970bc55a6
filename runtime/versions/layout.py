"""The version of the state directory: a marker in it, and migrations from each version to the next.

A directory of an older version is migrated when it is next used: forward, in order, under a lock. The marker is written
after each migration, so one that was killed runs again: migrations must be able to. A directory of a newer version is
refused, as what an older program wrote into it might be lost or misread. Before a migration, processes of the older
version must have ended; a release whose migrations need that says so in its changelog.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from plansurvive.plans.errors import PlanError
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.base.wait import locked

MARKER = "layout.json"
LOCK_SECONDS = 60.0
"""How long a process waits for another one that migrates."""
Migration = Callable[[Path], None]

MIGRATIONS: Mapping[int, Migration] = {}
"""By the version that it leads to, from 2 on: what changes in the directory. Each may run twice. Never removed."""
FIRST = 1
"""The version of a directory without a marker: as releases before the marker wrote it."""


class WrongLayout(PlanError):
    """The state directory is of a newer version (NEWER_STATE), or its version cannot be read or written (BAD_STATE)."""

    code = "BAD_STATE"


def prepare(directory: Path, migrations: Mapping[int, Migration] | None = None) -> int:
    """Bring an existing state directory to this program's version, and return that. Raises WrongLayout.

    `migrations`: instead of those of this program.
    """
    steps = MIGRATIONS if migrations is None else migrations
    newest = max(steps, default=FIRST)
    if _read(directory, newest) == newest:
        return newest
    try:
        with locked(directory / "layout.lock", LOCK_SECONDS):
            _migrate(directory, steps, newest)
    except TimeoutError as error:
        raise WrongLayout(
            f"Another process has been migrating {directory} for {LOCK_SECONDS:g} s; try again."
        ) from error
    except OSError as error:
        raise WrongLayout(f"{directory} cannot be brought to version {newest}: {error}") from error
    return newest


def check(directory: Path) -> None:
    """Raise WrongLayout if a state directory is of a newer version than this program; for those that only read."""
    _read(directory, max(MIGRATIONS, default=FIRST))


def _migrate(directory: Path, steps: Mapping[int, Migration], newest: int) -> None:
    found = _read(directory, newest)  # once more: another process may have migrated it meanwhile
    for version in range((found or FIRST) + 1, newest + 1):
        steps[version](directory)
        _write(directory, version)
    if found is None and newest == FIRST:
        _write(directory, newest)


def _read(directory: Path, newest: int) -> int | None:
    """The version of the directory; None without a marker. Raises WrongLayout."""
    marker = directory / MARKER
    try:
        text = marker.read_bytes()[:1_000]
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongLayout(f"{marker} cannot be read: {error.strerror}") from error
    try:
        found = json.loads(text)["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        found = None
    if not isinstance(found, int) or isinstance(found, bool) or found < FIRST:
        raise WrongLayout(f"{marker} does not say which version {directory} is of; restore it from a backup")
    if found > newest:
        raise WrongLayout(
            f"{directory} is of version {found}, written by a newer program; this one knows version {newest}. "
            "Use the newer program, or another directory (PLANS_STATE_DIR).",
            "NEWER_STATE",
        )
    return found


def _write(directory: Path, version: int) -> None:
    write_whole(directory / MARKER, json.dumps({"version": version}).encode() + b"\n")

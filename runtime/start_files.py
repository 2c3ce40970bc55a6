"""The operator's files that a worker reads when it starts, as features name them.

`READS` of their packages: name of the file -> (the setting that names another, if any; `module:function` that reads
it with the settings, and raises SettingError).

One rule for all of them: a worker goes by what they said when it started, and says so when they change; the worker that
commands keep in the background is replaced by the next command.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from plansurvive.runtime.settings import Settings
from plansurvive.runtime.sides import packages


def start_files(settings: Settings) -> Iterator[Path]:
    """Where they are, whether or not there is one."""
    given = settings.as_environ()
    for package in packages():
        for name, (variable, _) in getattr(package, "READS", {}).items():
            yield Path(given[variable]) if variable in given else settings.state_dir / name


def check_start_files(settings: Settings) -> None:
    """Raise SettingError for the first that a worker could not start with: it says so sooner, and to the person."""
    for package in packages():
        for _, reader in getattr(package, "READS", {}).values():
            module, _, function = reader.partition(":")
            getattr(import_module(f"{package.__name__}.{module}"), function)(settings)


def marks(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Of those that there are, what differs once they have changed."""
    found = dict[str, tuple[int, ...]]()
    for path in start_files(settings):
        try:
            status = path.stat()
        except OSError:
            continue
        found[str(path)] = status.st_mtime_ns, status.st_size, status.st_ino
    return found


class StartFiles:
    """What one process has read at its start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seen = marks(settings)

    def changed(self) -> list[str]:
        """Those that have changed since the last look."""
        now, before = marks(self._settings), self._seen
        self._seen = now
        return [path for path in {**before, **now} if before.get(path) != now.get(path)]


def sentence(paths: list[str]) -> str:
    """What is said of files that have changed."""
    names = " and ".join(paths)
    what, they = ("have", "they hold") if len(paths) > 1 else ("has", "it holds")
    return f"{names} {what} changed since the worker started; {they} once it is restarted (stop and start `plan up`)"

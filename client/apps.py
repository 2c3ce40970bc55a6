"""The seam of the apps: their commands and parts, as far as they are installed, and what to install where they are not.

The client knows a module of an app as a text, and imports it when it is asked for. Packages of others are found by
entry points, which are read only where ours do not do: reading them takes half as long as all of `plan --help`.
`plans.commands`: a command's name -> a `Command`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple

from plansurvive.runtime.base.extras import NAME, install_line

_APPS = "plansurvive.apps"


class Command(NamedTuple):
    """A command of `plan`, as data."""

    target: str
    """`module:function`; instead of a function, a `typer.Typer` is a group of commands."""
    sentence: str
    """The first sentence of the function's docstring, or of the group's help."""
    extra: str = NAME
    """What to install for it, as for pip: `plansurvive[web]`."""
    needs: tuple[str, ...] = ()
    """The modules without which it cannot run, by import name."""

    @property
    def missing(self) -> str:
        """What to type so that it can run; empty: it can."""
        return "" if all(map(_exists, self.needs)) else install_line(self.extra)


def commands_of_apps() -> dict[str, Command]:
    """Our commands, those of apps that are not installed as well. Imports no app."""
    if not _exists(_APPS):
        return {}
    commands: dict[str, tuple[str, str]] = import_module(_APPS).COMMANDS
    return {name: _command(place, text) for name, (place, text) in commands.items()}


def listed_of_apps() -> dict[str, tuple[str, str]]:
    """Command of an app of ours -> (its group in `plan --help`, the command that it stands behind)."""
    listed: dict[str, tuple[str, str]] = import_module(_APPS).LISTED if _exists(_APPS) else {}
    return listed


def command_of_others(name: str) -> Command | None:
    """The command of this name that another distribution has."""
    from importlib.metadata import entry_points  # slower to import than the rest of `plan --help`

    points = list(entry_points(group="plans.commands", name=name))
    return Command(*points[0].load()) if points else None


def part(app: str, module: str) -> ModuleType:
    """A module of an app. Raises AppMissing."""
    command = _command(f"{app}.{module}", "") if _exists(_APPS) else Command(app, "", needs=(_APPS,))
    if command.missing:
        from plansurvive.client.errors import AppMissing  # `plan --help` does without errors

        raise AppMissing(f"'{app}' is not installed; run: {command.missing}")
    return import_module(command.target)


def is_installed(app: str) -> bool:
    """Whether an app and its libraries are there."""
    return _exists(_APPS) and not _command(app, "").missing


def sides(side: str) -> list[ModuleType]:
    """The modules of that name of our apps that are installed and have one."""
    apps = list(import_module(_APPS).EXTRAS) if _exists(_APPS) else []
    found = [each for app in apps if not (each := _command(f"{app}.{side}", "")).missing]
    return [import_module(each.target) for each in found if _exists(each.target)]


def _command(place: str, text: str) -> Command:
    app = place.partition(".")[0]
    extra, libraries = import_module(_APPS).EXTRAS[app]
    extra = f"{NAME}[{extra}]" if extra else NAME
    return Command(f"{_APPS}.{place}", text, extra, (f"{_APPS}.{app}", *libraries))


def _exists(module: str) -> bool:
    """Whether a module can be imported. A folder without modules, left behind by compiled files, is none."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # the package it would be in is not there
        return False
    return spec is not None and spec.origin is not None

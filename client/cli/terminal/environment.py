"""Environment variables of the running command: the process's own, or those passed to `client.cli.app.run`.

A program that embeds a command passes the variables in: `os.environ` is not modified, and two commands that run at the
same time do not see each other's settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plansurvive.runtime.settings import Settings

_PASSED_IN: ContextVar[Mapping[str, str] | None] = ContextVar("environ of the command", default=None)


@contextmanager
def environment(environ: Mapping[str, str] | None) -> Iterator[None]:
    """Make `environ()` return these variables inside the block; None means those of the process."""
    token = _PASSED_IN.set(environ)
    try:
        yield
    finally:
        _PASSED_IN.reset(token)


def environ() -> Mapping[str, str]:
    """The environment variables of this command."""
    passed_in = _PASSED_IN.get()
    return os.environ if passed_in is None else passed_in


def default(name: str, value: str) -> str:
    """Set a variable for the programs that this process starts, unless it has one; returns the one in force."""
    return os.environ.setdefault(name, value)


def settings() -> Settings:
    """The settings of this command. Raises SettingError."""
    from plansurvive.runtime.settings import Settings  # `plan --help` does without

    return Settings.read(environ())

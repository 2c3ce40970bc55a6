"""Where the key ring comes from: a file that only this user can read, or the output of a command.

PLANS_KEYS is the path of the file, or `command:PROGRAM ARGUMENTS`. The command is run without a shell; what it prints
is the ring. Neither a message nor a log shows any of that text.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from plansurvive.features.keys.ring import MAX_BYTES, BadRing, KeyRing, parse
from plansurvive.features.keys.settings import COMMAND
from plansurvive.runtime.private_files import exposed

COMMAND_SECONDS = 20.0
"""Longest time that the command may take."""


@dataclass(frozen=True)
class FileSource:
    """A file. It is looked at before each use, at most once in `seconds`."""

    path: Path
    seconds: float = 1.0

    def __str__(self) -> str:
        return str(self.path)

    def stamp(self) -> tuple[int, ...] | None:
        """What changes when the file does; None if it cannot be read now."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def read(self) -> KeyRing:
        """The ring. Raises BadRing."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise BadRing(f"{self.path} cannot be read: {error.strerror}; `plan keys new` makes a key ring") from None
        try:
            if problem := exposed(os.fstat(descriptor)):
                raise BadRing(f"{self.path} {problem}; run `chmod 600 {self.path}`, and `plan keys new` if it was read")
            text = b"".join(iter(lambda: os.read(descriptor, MAX_BYTES), b""))
        finally:
            os.close(descriptor)
        return _parsed(text, str(self.path))


@dataclass(frozen=True)
class CommandSource:
    """A command, such as that of a secrets manager. It is run again after `seconds`, and for an unknown key."""

    words: tuple[str, ...]
    seconds: float = 30.0

    def __str__(self) -> str:
        return f"command {self.words[0]}"

    def stamp(self) -> None:
        """Nothing tells whether its output would be another one."""
        return

    def read(self) -> KeyRing:
        """The ring. Raises BadRing."""
        try:
            done = subprocess.run(
                self.words, capture_output=True, timeout=COMMAND_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BadRing(f"the command {self.words[0]} did not run: {type(error).__name__}") from None
        if done.returncode:
            raise BadRing(f"the command {self.words[0]} ended with exit code {done.returncode}")
        return _parsed(done.stdout[: MAX_BYTES + 1], str(self))


Source = FileSource | CommandSource


def source_of(text: str) -> Source:
    """The source that PLANS_KEYS names, as the settings have checked it."""
    if text.startswith(COMMAND):
        return CommandSource(tuple(shlex.split(text.removeprefix(COMMAND))))
    return FileSource(Path(text))


def _parsed(text: bytes, name: str) -> KeyRing:
    try:
        return parse(text.decode())
    except UnicodeDecodeError:
        raise BadRing(f"{name}: it is not UTF-8 text") from None
    except BadRing as error:
        raise BadRing(f"{name}: {error.message}") from None

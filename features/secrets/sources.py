"""What a secret is at this moment: a variable, a private file, or what a command prints.

No message shows any part of it, nor the output of a command that failed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from plansurvive.features.secrets.secrets_file import COMMAND, FILE_OF, Entry
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.home_paths import home_path
from plansurvive.runtime.private_files import exposed

MISSING = "SECRET_MISSING"
MAX_BYTES = 65_536
SHORTEST = 8
"""Shorter values cannot be masked: they would be found in ordinary text."""
COMMAND_SECONDS = 20.0


def value_of(name: str, entry: Entry, directory: Path, environ: Mapping[str, str]) -> str:
    """The value of a secret, without white space around it. Raises ToolError SECRET_MISSING.

    `directory`: what paths of files are relative to. A command that fails is worth another attempt.
    """
    text = _text(name, entry, directory, environ)
    if len(text) > MAX_BYTES or "\0" in text:
        raise _missing(name, f"has more than {MAX_BYTES:,} characters, or is not text")
    if not text:
        raise _missing(name, f"is empty ({entry.place})")
    if len(text) < SHORTEST:
        raise _missing(name, f"is shorter than {SHORTEST} characters, so it could not be kept out of results and logs")
    return text


def _text(name: str, entry: Entry, directory: Path, environ: Mapping[str, str]) -> str:
    rest = entry.source.partition(":")[2]
    if entry.kind == COMMAND:
        return _of_command(name, entry.words)
    if entry.kind == FILE_OF:
        return _of_file(name, directory / home_path(rest))
    if rest not in environ:
        raise _missing(name, f"comes from the variable {rest}, which is not set for the worker")
    return environ[rest].strip()


def _of_file(name: str, path: Path) -> str:
    try:
        with open(path, "rb", opener=_opener) as file:
            if problem := exposed(os.fstat(file.fileno())):
                raise _missing(name, f"comes from {path}, which {problem}; run `chmod 600 {path}`")
            return _decoded(name, file.read(MAX_BYTES + 1))
    except OSError as error:  # a directory cannot be read as a file, either
        raise _missing(name, f"comes from {path}, which cannot be read: {error.strerror}") from None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _of_command(name: str, words: list[str]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=COMMAND_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:  # ValueError: a NUL in the command
        raise _missing(name, f"comes from {words[0]}, which did not run: {type(error).__name__}", again=True) from None
    if done.returncode:
        raise _missing(name, f"comes from {words[0]}, which ended with exit code {done.returncode}", again=True)
    return _decoded(name, done.stdout[: MAX_BYTES + 1])


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode().strip()
    except UnicodeDecodeError:
        raise _missing(name, "is not UTF-8 text") from None


def _missing(name: str, problem: str, *, again: bool = False) -> ToolError:
    return ToolError(MISSING, f"the secret {name} {problem}", retryable=again)

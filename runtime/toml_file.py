"""Reads a TOML file of the operator: mcp.toml, secrets.toml, limits.toml, notify.toml, policy.toml."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plansurvive.runtime.settings import SettingError

MAX_BYTES = 1024 * 1024
_KEY = r"([A-Za-z0-9_.-]+)"
_BARE = re.compile(rf"\s*{_KEY}\s*=\s*((?!\d+-)[^\s=\"'\[{{#][^\"'#]*?)\s*(?:#.*)?")
_WITH_COLON = re.compile(rf"\s*\"?{_KEY}\"?\s*:\s*\S.*")
_PLACE = re.compile(r" ?\((at (?:line (\d+), column \d+|end of document))\)$")
Refuse = Callable[[str], SettingError]


def refusal(setting: str, path: Path, problem: str) -> SettingError:
    """The error about a file: the setting that names it, the file, and what is wrong with it."""
    return SettingError({setting: f"{path}: {problem}"})


def read_toml(
    path: Path, setting: str, *, is_named: bool, may_do: str | None, quotes: bool = True
) -> dict[str, Any] | None:
    """The content; see `read_text`. `quotes`: an error of the syntax may quote the file."""
    text = read_text(path, setting, is_named=is_named, may_do=may_do)
    return None if text is None else parsed(text, path, setting, quotes=quotes)


def parsed(text: str, path: Path, setting: str, *, quotes: bool = True) -> dict[str, Any]:
    """The content of the text of a file; see `read_toml`. Raises SettingError about `setting`."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: not TOML, a number of thousands of digits
        line, problem = syntax_problem(error, text, quotes=quotes)
        raise refusal(setting, path, f"line {line}: {problem}") from None


def syntax_problem(error: Exception, text: str, *, quotes: bool = True) -> tuple[int, str]:
    """The line in which the syntax of a text is wrong, its last one where the parser says none, and what is wrong.

    `quotes`: it may be in the parser's words, which quote the text.
    """
    if text.lstrip().startswith("{"):
        return 1, "it is not TOML but JSON; a table is written as `[TABLE.NAME]`, and below it lines `KEY = VALUE`"
    found, lines = _PLACE.search(str(error)), text.splitlines()
    line, problem = int(found[2]) if found and found[2] else max(len(lines), 1), _PLACE.sub("", str(error))
    what = _meant(lines[line - 1]) if problem.startswith(_NO_PAIR) and line <= len(lines) else ""
    what = what or next((said for begins, said in _PROBLEMS.items() if problem.startswith(begins)), "")
    if not what and quotes:
        what = problem[:1].lower() + problem[1:]
    return line, f"it is not TOML: {what}" if what else "it is not TOML"


_NO_PAIR = ("Invalid value", "Expected '='", "Expected newline")
_PROBLEMS = {
    "Invalid value": "a value is missing, is not closed, or is none that TOML has",
    "Cannot overwrite a value": "the key is given twice",
    "Cannot declare": "the table is given twice; put its keys into one",
    "Illegal character '\\n'": "a text ends on the line on which it begins, with the same quotation mark",
    "Unescaped": "write a backslash twice, or put the text in single quotes",
}
"""By how a message of the parser begins, the same for who has written the file."""


def _meant(line: str) -> str:
    """What to write instead of a line without a key and a value, where that can be known; empty: it cannot.

    Without the value, which may be secret.
    """
    if found := _WITH_COLON.fullmatch(line):
        return f"`=` separates a key from its value: {found[1]} = ..."
    if found := _BARE.fullmatch(line):
        if (truth := found[2].lower()) in ("true", "false"):
            return f"true and false are written in lower case: {found[1]} = {truth}"
        return f'a text needs quotes: {found[1]} = "..."'
    return ""


def read_text(path: Path, setting: str, *, is_named: bool, may_do: str | None) -> str | None:
    """The text; None if there is no file and none `is_named`. Raises SettingError about `setting`.

    Only this user and root may be able to change the file; `may_do`: what others could do, None: nothing that matters.
    """

    def refused(problem: str) -> SettingError:
        return refusal(setting, path, problem)

    try:
        with path.open("rb") as file:
            if may_do is not None:
                _check_owner(path, os.fstat(file.fileno()), may_do, refused)
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise refused(f"it is larger than {MAX_BYTES:,} bytes")
        return data.decode("utf-8")
    except FileNotFoundError:
        if not is_named:
            return None
        raise refused("it does not exist; create it, or name another") from None
    except OSError as error:
        raise refused(f"it cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise refused("it is not UTF-8") from None


def _check_owner(path: Path, status: os.stat_result, may_do: str, refused: Refuse) -> None:
    """What such a file says is done as the worker's user: nobody else may have written it."""
    if not stat.S_ISREG(status.st_mode):
        raise refused("it is not a file")
    if status.st_uid not in (0, os.geteuid()):
        raise refused(f"it belongs to another user, who could {may_do}; make it yours")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise refused(f"others may change it, and {may_do}; run `chmod go-w {path}`")

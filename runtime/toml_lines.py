"""In which line of a TOML file each key is. Pure text.

`tomllib` parses the file and says nothing of places; what a person corrects is a line. Only what tells keys from values
is read here: headers, texts in quotes, brackets and comments. The text must be TOML.

Rejected: tomlkit, which keeps the whole style of a file, says no line either, and would be one more dependency.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

Path = tuple[str | int, ...]
_PART = re.compile(
    r'"""(?:\\.|[^\\])*?"""{1,3}'
    r"|'''.*?'''{1,3}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n=]"
    r"|[^\[\]{}\n=\"'#]+",
    re.DOTALL,
)


class Lines:
    """The lines of the keys of a TOML text."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {(): 1}
        above: Path = ()
        counts: dict[Path, int] = {}
        for number, statement in _statements(text):
            header = re.fullmatch(r"\s*(\[\[?)(.*?)\]\]?\s*", statement, re.DOTALL)
            if header is None:
                path = (*above, *_keys(statement))
            else:
                path = _below(_keys(header[2]), counts)
                if header[1] == "[[":
                    counts[path] = counts.get(path, -1) + 1
                    path = (*path, counts[path])
                above = path
            for length in range(1, len(path) + 1):
                self._lines.setdefault(path[:length], number)

    def of(self, path: Sequence[str | int]) -> int:
        """The line of a key, or of the nearest one above it that has a line of its own."""
        found = tuple(path)
        while found not in self._lines:
            found = found[:-1]
        return self._lines[found]


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The headers, and the keys with their `=` taken off, each with the line in which it begins."""
    line, began, depth, kept, is_value = 1, 1, 0, "", False
    for part in _PART.findall(text.replace("\r\n", "\n") + "\n"):
        if part == "\n" and depth == 0:
            if kept.strip():
                yield began, kept
            kept, is_value = "", False
        elif part == "=" and depth == 0 and not is_value:
            is_value = True
        elif not part.startswith("#"):
            if not kept.strip() and not is_value:
                began = line
            depth += (part in ("[", "{")) - (part in ("]", "}"))
            kept += "" if is_value else part
        line += part.count("\n")


def _keys(text: str) -> Path:
    """The parts of a dotted key."""
    found: Any = tomllib.loads(f"{text.strip()} = 0")
    path: list[str] = []
    while isinstance(found, dict):
        name, found = next(iter(found.items()))
        path.append(name)
    return tuple(path)


def _below(keys: Path, counts: dict[Path, int]) -> Path:
    """The path of a header: below the last table of each list that it names."""
    path: Path = ()
    for index, key in enumerate(keys):
        path = (*path, key)
        if path in counts and index < len(keys) - 1:
            path = (*path, counts[path])
    return path

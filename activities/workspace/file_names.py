r"""File names as text, and back: lossless for every name that a file system can have.

A name is bytes. Where it is UTF-8 it is shown as that text; a byte that is not is shown as `\xHH`, for example
`x\xffy`. So that the text leads back to the name, a backslash in a name that would read like that is shown as `\x5c`.
Paths in results, histories, logs, messages and plans are such texts; `native` makes the name for the operating system.

Every name that comes from the operating system passes `visible`, and every one that goes there `native`: in
`activities.workspace.workspace`, and where directories are listed or links read.

Rejected: surrogates inside (JSON, Protobuf and SQLite refuse them), replacement characters (lead to no file), refusing
such files after a command has made them.
"""

from __future__ import annotations

import os
import re

_READS_LIKE_A_BYTE = re.compile(r"\\(?=x(?:5c|[89a-f][0-9a-f]))")
_BYTE = re.compile(rb"\\x(5c|[89a-f][0-9a-f])")
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(name: str) -> str:
    """The text for a name as Python gives it, with `surrogateescape`; valid Unicode."""
    if "\\" in name:
        name = _READS_LIKE_A_BYTE.sub(r"\\x5c", name)
    if name.isascii() or not _SURROGATE.search(name):
        return name
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def native(text: str) -> str:
    """The name that a text stands for, as Python takes it."""
    if "\\x" not in text:
        return text
    return os.fsdecode(_BYTE.sub(lambda match: bytes.fromhex(match[1].decode()), text.encode()))


def canonical(text: str) -> str:
    """The one text for the name: `\\xc3\\xa9` spells an `é`, but is not its text."""
    return visible(native(text))


def is_shown_as_bytes(name: str) -> bool:
    """Whether a name, as Python gives it, is not UTF-8."""
    return not name.isascii() and _SURROGATE.search(name) is not None

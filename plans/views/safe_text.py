"""Makes any text safe to show in a terminal: escapes control and bidirectional characters.

Imports nothing of ours, so that a command can print errors without loading the rest.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """Escape control and bidirectional characters as `\\uXXXX`, except tab and newline."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def line(text: str) -> str:
    """The text on one line, safe to show."""
    return safe(" ".join(text.split("\n")).replace("\t", " "))

"""How any text is made safe to show: control and direction characters are written out.

Imports nothing, so that a command can print its errors before it has read a plan.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def safe(text: str) -> str:
    """A text with control and direction characters written out, so that it shows as what it is."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def line(text: str) -> str:
    """A text on one line, safe to show."""
    return safe(" ".join(text.split("\n")).replace("\t", " "))

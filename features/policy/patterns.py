"""The patterns of a rule: names, paths, hosts and commands with `*`, as expressions of RE2. Pure.

In a name `*` stands for anything. In the value of an argument it does not cross `/`, and `**` does. In a command it
stands for anything inside words or between them, but not for the space between two words.
"""

from __future__ import annotations

import re
from typing import Any

import re2

UNKNOWN_PART = "\x00"
"""Stands in a word for what an expansion would put there."""
INNER_SPACE = "\x1f"
"""Stands for white space inside a word, which a space of a pattern does not fit."""
_CLASS = re.compile(r"\[(!?)([^\[\]]+)\]")
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.max_mem = 512 * 1024


class BadPattern(ValueError):
    """The pattern cannot be used; the message says why, and what to write."""


class Pattern:
    """A compiled pattern."""

    def __init__(self, expression: str, glob: str = "") -> None:
        """`glob`: what it was made of; most texts already differ from its beginning. Raises BadPattern."""
        self.begins = re.split(r"[*?\[]", glob, maxsplit=1)[0]
        """The text with which all begins that fits; empty: it does not say."""
        try:
            self._compiled: Any = re2.compile(expression, _OPTIONS)
        except re2.error as error:
            why = error.args[0] if error.args else error
            text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
            raise BadPattern(
                f"it cannot be used: {text[:200]} (RE2 has no look-around and no back-references)"
            ) from None

    def fits(self, text: str) -> bool:
        """Whether the whole text fits."""
        if not text.startswith(self.begins):
            return False
        try:
            return self._compiled.fullmatch(text) is not None
        except UnicodeEncodeError:  # a lone surrogate, which fits nothing
            return False


def of_names(pattern: str, *, ignores_case: bool = False) -> Pattern:
    """A pattern for names of tools, plans, people and hosts: `*` stands for anything."""
    expression = _translated(pattern, ".*", ".")
    return Pattern(f"(?is){expression}") if ignores_case else Pattern(f"(?s){expression}", pattern)


def of_values(pattern: str) -> Pattern:
    """A pattern for the value of an argument: `*` does not cross `/`; `**` as a part of its own does."""
    segments = pattern.split("/")
    if any("**" in each and each != "**" for each in segments):
        raise BadPattern("`**` stands alone between slashes, as in `docs/**` or `**/*.md`")
    text = ""
    for index, segment in enumerate(segments):
        is_last = index == len(segments) - 1
        if segment == "**":
            text += "(?:.+)" if is_last and index else "(?:.*)" if is_last else "(?:.*/)?"
        else:
            text += _translated(segment, "[^/]*", "[^/]") + ("" if is_last else "/")
    return Pattern(f"(?s){text}", pattern)


def of_commands(pattern: str) -> Pattern:
    """A pattern for the words of a command. ` *` at its end also fits a command that has no further words."""
    if not pattern.strip():
        raise BadPattern("it is empty; write the command, such as `git status *`")
    rest = "(?: .*)?" if pattern.endswith(" *") else ""
    glob = pattern[:-2] if rest else pattern
    return Pattern(f"(?s){_translated(glob, '.*', '.')}{rest}", glob)


def of_expression(expression: str) -> Pattern:
    """A regular expression, which the whole value must fit."""
    return Pattern(f"(?s:{expression})")


def _translated(pattern: str, star: str, one: str) -> str:
    text, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        if char == "[":
            found = _CLASS.match(pattern, at)
            if found is None:
                raise BadPattern("`[` has no `]` after it; write `[[]` for the character itself")
            text += f"[{'^/' if found[1] else ''}{re.escape(found[2]).replace(chr(92) + '-', '-')}]"
            at = found.end()
            continue
        text += {"*": star, "?": one}.get(char, re.escape(char))
        at += 1
    return text

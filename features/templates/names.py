"""Names of templates, `NAME` or `NAME@HASH`, and the errors about them.

A name is a directory on somebody's disk and a word in a plan: letters, digits, `_` and `-`, so it can neither leave its
folder (`../x`) nor hide in it (`.x`). A hash is the beginning of the content's, at least six characters.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line

NAME = r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}"
SHORTEST = 6
"""Least characters of a hash that name a version."""
_NAMED = re.compile(rf"({NAME})(?:@([0-9a-f]{{{SHORTEST},64}}))?")


class TemplateError(PlanError):
    """A template that is missing, ambiguous, changed, or not usable.

    Codes: UNKNOWN_TEMPLATE, AMBIGUOUS_TEMPLATE, TEMPLATE_CHANGED (a file is not what was saved), BAD_TEMPLATE (a name
    or a place that cannot be one).
    """

    code = "BAD_TEMPLATE"


ENDINGS = (".yaml", ".yml", ".json")
"""Of names of files, which no template has."""


_LETTERS = "1 to 64 letters, digits, '_' or '-'"


class Named(NamedTuple):
    """A parsed `NAME` or `NAME@HASH`."""

    name: str
    hash: str = ""


def named(text: str) -> Named:
    """Parse a `NAME` or `NAME@HASH`. Raises TemplateError BAD_TEMPLATE."""
    of_version = f"write {_LETTERS}, and @ with at least {SHORTEST} characters for a version"
    return _parsed(text, f"is not the name of a template; {of_version}")


def _parsed(text: str, otherwise: str) -> Named:
    """`otherwise`: what is said of a text that is none, and no file either."""
    found = _NAMED.fullmatch(text)
    if not found and text.endswith(ENDINGS):
        file = line(text[:100])
        how = f"plan run {file}, or save it first: plan template save NAME {file}"
        raise TemplateError(f"{_shown(text)} is a file, and not the name of a template: {how}")
    if not found:
        raise TemplateError(f"{_shown(text)} {otherwise}")
    return Named(found[1], found[2] or "")


def new_name(text: str) -> str:
    """A name to save under. Raises TemplateError BAD_TEMPLATE, also for one with a version."""
    found = _parsed(text, f"cannot be the name of a template; write {_LETTERS}, without spaces")
    if found.hash:
        raise TemplateError(f"{_shown(text)} names a version, which is made by its content; leave @{found.hash} out")
    return found.name


def hash_of(text: str) -> str:
    """The version of a content: SHA-256 in hex, with all line ends as LF, which git may change."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def _shown(text: str) -> str:
    return f"'{line(text[:100])}'"

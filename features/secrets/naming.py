"""How arguments name secrets: `{{secret.NAME}}`, which the worker that makes the call replaces.

A text names a secret if `secret` is neither a step nor a variable where it stands. It may hold other words around it,
as in `Bearer {{secret.TOKEN}}`, and further secrets, but no value of a step or input: whoever approves the call would
not see that value. Everything else that begins with `secret` is refused rather than left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from plansurvive.plans.expressions.references import Location, Reference, in_text, strings

SECRET = "secret"  # noqa: S105 - the word that plans write
"""The root name of secrets."""
NAME = r"[A-Za-z_][A-Za-z0-9_]{0,63}"
"""What secrets are called."""
_NAME = re.compile(NAME)
_PARTS = re.compile(
    rf"\{{{{4}}((?:(?!\{{\{{|\}}\}}).)*)\}}{{4}}|\{{{{2}}\s*{SECRET}\s*\.({NAME})\s*\}}{{2}}", re.DOTALL
)
"""Texts that stand for braces, and names of secrets."""


def names_in(text: str) -> list[str]:
    """The names of the secrets in a text, in reading order; empty if it holds none, or is wrong (`misuse`)."""
    found = in_text(text) if SECRET in text else []
    return [] if _wrong(found) else [each.path for each in found]


def misuse(text: str) -> str:
    """What is wrong with a text that mentions secrets; empty if nothing is, or it mentions none."""
    found = in_text(text) if SECRET in text else []
    return _wrong(found) if any(each.root == SECRET for each in found) else ""


def places_of(args: Mapping[str, Any]) -> Iterator[tuple[Location, list[str]]]:
    """The places of texts in arguments that name secrets, with the names."""
    for place, text in strings(args):
        if names := names_in(text):
            yield list(place), names


def filled(text: str, values: Mapping[str, str], *, literal: bool = False) -> str:
    """The text with its secrets in place of their names. What they contain is not scanned again.

    `literal`: of an agent's text everything else stays as it is; of a plan's, `{{{{x}}}}` stands for `{{x}}`.
    """
    return _PARTS.sub(lambda part: values[part[2]] if part[2] else part[0] if literal else f"{{{{{part[1]}}}}}", text)


def _wrong(found: list[Reference]) -> str:
    if not found:
        return "it names no secret"
    for each in found:
        if each.root != SECRET:
            return (
                f"'{each.text[:100]}' is in the same text as a secret, so that a person who approves the call would not"
                " see its value; give the secret a text of its own, such as a header or a variable"
            )
        if each.whole or not _NAME.fullmatch(each.path):
            return f"'{each.text[:100]}' does not name a secret; write {{{{{SECRET}.NAME}}}}, and nothing after NAME"
    return ""

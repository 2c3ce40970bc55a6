"""What pydantic says about a value, in the words of plan files and settings: a list, an object, a whole number."""

from __future__ import annotations

import re

_OR_MODEL = re.compile(r" or instance of \w+")
"""A class of ours, which no file can hold."""
_WORDS = (
    ("Value error, ", ""),
    ("Input should be", "should be"),
    (", unable to parse string as an integer", ""),
    (", unable to parse string as a number", ""),
    (", unable to interpret input", ""),
    (", got a number with a fractional part", ""),
    ("a valid list", "a list"),
    ("a valid dictionary", "an object (`name: value`)"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid string", "a string"),
    ("a valid boolean", "true or false"),
    ("String should have at least 1 character", "should not be empty"),
    ("String should have", "should have"),
    ("List should have", "should have"),
)


def in_plain_words(message: str) -> str:
    """A message of pydantic in plain words."""
    for technical, plain in _WORDS:
        message = message.replace(technical, plain)
    return _OR_MODEL.sub("", message)

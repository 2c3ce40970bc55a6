"""Counting words and sentences."""

import re


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)


def sentences(text: str) -> int:
    """How many sentences a text has."""
    return len(re.findall(r"[.!?]+(?=\s|$)", text)) or bool(text.strip())

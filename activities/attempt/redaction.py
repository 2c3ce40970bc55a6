"""Values that must not be seen: taken out of every text before it leaves the worker (FAULTS T9).

Placeholders that local endpoints are given for a key (`none`, `ollama`) are too short to be secrets and stay: taking
them out would spoil ordinary text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pydantic import SecretStr

MASK = "[secret]"
SHORTEST = 8
"""Shorter values are no secrets."""
_KEY_SHAPE = re.compile(r"\bsk-[A-Za-z0-9_*.\-]{6,}")
"""What keys of OpenAI and its kin look like, also when a server repeats them half masked."""


class Secrets:
    """The known secrets of a worker. Its text form never holds them."""

    def __init__(self, values: Iterable[SecretStr | None]) -> None:
        found = {value.get_secret_value() for value in values if value is not None}
        self._values = sorted((value for value in found if len(value) >= SHORTEST), key=len, reverse=True)

    def out_of(self, text: str) -> str:
        """The text without them."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def out_of_message(self, text: str) -> str:
        """An error text of a server without them, and without anything shaped like a key."""
        return _KEY_SHAPE.sub(MASK, self.out_of(text))

    def out_of_value(self, value: Any) -> Any:
        """A JSON value without them, keys of objects included."""
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, list):
            return [self.out_of_value(each) for each in value]
        if isinstance(value, dict):
            return {self.out_of(name): self.out_of_value(each) for name, each in value.items()}
        return value

"""Why a notification was not delivered, in words without an address or a secret."""

from __future__ import annotations


class NotDelivered(Exception):
    """A message was not delivered. `lasting`: another attempt would not be either; `wait`: seconds until the next."""

    def __init__(self, text: str, *, lasting: bool = False, wait: float | None = None) -> None:
        super().__init__(text)
        self.text, self.lasting, self.wait = text, lasting, wait

"""What a ledger says about a run that was killed: `start STEP` and `end STEP`, in the order they happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Judged:
    """Numbers of steps."""

    in_flight: int
    """Begun and not ended when the process was killed."""
    begun_again: int
    """Of those, begun again."""
    done_again: int
    """Ended before the kill, and begun again all the same."""
    lost: int
    """Never ended."""


def judge(before: list[str], after: list[str], steps: Iterable[str]) -> Judged:
    """`before`: the ledger when the process was killed; `after`: what came since."""
    ended = {name for word, name in map(str.split, before) if word == "end"}
    begun = {name for word, name in map(str.split, before) if word == "start"} - ended
    again = Counter(name for word, name in map(str.split, after) if word == "start")
    whole = ended | {name for word, name in map(str.split, after) if word == "end"}
    return Judged(
        in_flight=len(begun),
        begun_again=sum(name in again for name in begun),
        done_again=sum(name in again for name in ended),
        lost=sum(name not in whole for name in steps),
    )

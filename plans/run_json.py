"""A Run as text: how it is carried on, kept when it has ended, and read again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from plans.run import Run


def text_of(run: Run) -> str:
    """The Run as JSON text, without what is not said."""
    return run.model_dump_json(exclude_defaults=True)


def run_of(text: str | bytes) -> Run:
    """The Run of a text; raises pydantic's ValidationError."""
    with without_collecting():
        return Run.model_validate_json(text)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Hold the garbage collector: while it goes through a Run of 10,000 steps that is being read, over and over,
    reading takes four times as long: a workflow task may run out of its time, and people wait. What is read has no
    cycles. Seen by nothing a workflow could decide on.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()

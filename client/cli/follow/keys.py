"""Single key presses from the terminal, while other things go on. It is put back as it was, whatever happens."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def keys(pressed: Callable[[str], None]) -> Iterator[None]:
    """Tell `pressed` of every key. Control-C stays what it is. Without a terminal to read from, nothing is told."""
    if not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()
    tty.setcbreak(terminal)
    try:
        loop.add_reader(terminal, lambda: _read(terminal, pressed))
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def forget_typed() -> None:
    """Drop keys pressed before a question was to be seen: they were no answer to it."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _read(terminal: int, pressed: Callable[[str], None]) -> None:
    data = os.read(terminal, 64)
    if len(data) == 1:  # more at once is a paste or a function key, no answer
        pressed(data.decode("latin-1"))
    elif not data:
        asyncio.get_running_loop().remove_reader(terminal)

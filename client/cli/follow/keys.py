"""Reads single key presses from the terminal asynchronously; always restores the terminal's mode."""

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
    """Call `pressed` with each key. Ctrl-C still interrupts. Does nothing if standard input is not a terminal."""
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
    """Discard keys pressed before a question appeared, so that they do not answer it."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _read(terminal: int, pressed: Callable[[str], None]) -> None:
    data = os.read(terminal, 64)
    if len(data) == 1:  # more than one byte is a paste or a function key, not an answer
        pressed(data.decode("latin-1"))
    elif not data:
        asyncio.get_running_loop().remove_reader(terminal)

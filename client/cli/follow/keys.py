"""Reads single key presses, or whole lines, from the terminal asynchronously; always restores the terminal's mode."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LINE_BYTES = 65_536
"""More than the longest line that a terminal passes on."""


class Keyboard:
    """The terminal's keyboard. Nothing is read if standard input is not a terminal."""

    def __init__(self, pressed: Callable[[str], None]) -> None:
        self._pressed = pressed
        self._before: list[Any] | None = None

    def start(self) -> None:
        """Call `pressed` with each key from now on. Ctrl-C still interrupts."""
        if sys.stdin.isatty() and self._before is None:
            terminal = sys.stdin.fileno()
            self._before = termios.tcgetattr(terminal)
            tty.setcbreak(terminal)
            asyncio.get_running_loop().add_reader(terminal, lambda: _read(terminal, self._pressed))

    def stop(self) -> None:
        """Read no more keys; the terminal is as before."""
        if self._before is not None:
            terminal = sys.stdin.fileno()
            asyncio.get_running_loop().remove_reader(terminal)
            termios.tcsetattr(terminal, termios.TCSADRAIN, self._before)
            self._before = None

    async def line(self) -> str | None:
        """One line, typed with the terminal's own editing, while no keys are read; None at its end (Ctrl-D)."""
        loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
        typed: asyncio.Future[bytes] = loop.create_future()

        def read() -> None:
            if not typed.done():
                typed.set_result(os.read(terminal, LINE_BYTES))

        loop.add_reader(terminal, read)
        try:
            data = await typed
        finally:
            loop.remove_reader(terminal)
        return data.decode(errors="replace").removesuffix("\n") if data else None


@contextmanager
def keys(pressed: Callable[[str], None]) -> Iterator[Keyboard]:
    """Call `pressed` with each key until the block ends."""
    keyboard = Keyboard(pressed)
    keyboard.start()
    try:
        yield keyboard
    finally:
        keyboard.stop()


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

"""A real terminal, and a picture of what is on it."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

PATIENCE = 120.0
"""Seconds until something must be on the screen."""


class Terminal:
    """A terminal of a size, in which commands are typed; tmux draws it."""

    def __init__(
        self, name: str, directory: Path, environ: Mapping[str, str], columns: int = 110, rows: int = 34
    ) -> None:
        self._socket, self._columns = f"plans-pictures-{name}", columns
        size = ["-x", str(columns), "-y", str(rows)]
        shell = ["env", *map("=".join, environ.items()), "sh"]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, "-c", str(directory), *shell)
        self._tmux("set", "-g", "status", "off")

    def type(self, text: str, *, enter: bool = True) -> None:
        """Type a text, and Enter."""
        self._tmux("send-keys", "-l", text)
        if enter:
            self._tmux("send-keys", "Enter")

    def wait(self, pattern: str) -> str:
        """The screen with its colours, once it shows the pattern and has stayed the same for a moment."""
        until, before = time.monotonic() + PATIENCE, ""
        while time.monotonic() < until:
            screen = self._tmux("capture-pane", "-p", "-e")
            if re.search(pattern, Text.from_ansi(screen).plain) and screen == before:
                return screen
            before = screen
            time.sleep(0.4)
        raise TimeoutError(f"the terminal never showed {pattern!r}:\n{before}")

    def close(self) -> None:
        """End the terminal and what runs in it."""
        self._tmux("kill-server")

    def svg(self, screen: str, title: str) -> str:
        """The screen as a picture that loads nothing."""
        console = Console(record=True, width=self._columns, file=open("/dev/null", "w"), force_terminal=True)  # noqa: SIM115, PTH123
        console.print(Text.from_ansi(screen.rstrip("\n")), soft_wrap=False, overflow="crop", no_wrap=True)
        drawn = console.export_svg(title=title, theme=DIMMED_MONOKAI)
        return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code, ", "")

    def _tmux(self, *command: str) -> str:
        return subprocess.run(["tmux", "-L", self._socket, *command], check=True, capture_output=True, text=True).stdout

"""What a process has used so far, read from /proc: its CPU time and its memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A process that is looked at from outside."""

    pid: int

    @property
    def cpu(self) -> float:
        """Seconds of CPU it has used, its threads included."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> int:
        """Bytes it holds in memory now."""
        return self._status("VmRSS")

    @property
    def peak_memory(self) -> int:
        """Most bytes it held since it began, or since `forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Measure the peak from now on."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        return 0

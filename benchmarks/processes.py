"""CPU time and memory of a process, read from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Watched:
    """A process to measure."""

    pid: int

    @property
    def cpu(self) -> float:
        """CPU time used so far in seconds, all threads included."""
        return sum(self._times()[:2]) / _TICKS

    @property
    def cpu_of_all(self) -> float:
        """The same, with the processes that it started and that have ended: its commands."""
        return sum(self._times()) / _TICKS

    @property
    def memory(self) -> int:
        """Resident memory in bytes."""
        return self._status("VmRSS")

    @property
    def peak_memory(self) -> int:
        """Peak resident memory in bytes since its start, or since `forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Reset the peak to the current memory."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def _times(self) -> list[int]:
        """Clock ticks: user and system, of its own and of children that it has waited for (proc_pid_stat(5))."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return [int(field) for field in fields[11:15]]

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        return 0

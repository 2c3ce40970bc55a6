"""Steps of a process's clock: a library that is loaded before libc adds an offset, read from a file, to its real time.

The server is a Go program, which asks the kernel without libc: its clock cannot be stepped this way, and a time
namespace knows no offset for the real time either. So workers' clocks are stepped, the server's is not.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *offset;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *place = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (place != MAP_FAILED) offset = place;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, id, now);
    if (!result && offset && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += *offset;
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
"""


class Clock:
    """The clock of the processes started with `environ`."""

    def __init__(self, folder: Path) -> None:
        """Build the library in a directory. Raises subprocess.CalledProcessError if it cannot be built."""
        self.library, self.file = folder / "clock.so", folder / "clock.offset"
        command = ["gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(self.library)]
        subprocess.run(command, input=SOURCE, text=True, check=True, capture_output=True)
        self.step(0)

    @property
    def environ(self) -> dict[str, str]:
        """Variables for processes whose clock this is."""
        return {"LD_PRELOAD": str(self.library), "CHAOS_CLOCK": str(self.file)}

    def step(self, seconds: int) -> None:
        """Set their clock so many seconds off, at once."""
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))


def missing() -> str:
    """Why clocks cannot be stepped here; empty if they can."""
    return "" if shutil.which("gcc") else "no gcc, which builds the library that steps clocks"

"""Small disks of a night's own: tmpfs in a mount namespace that nobody else sees and that ends with its processes.

Root may make one anywhere, others where the kernel lets them make user namespaces; `namespace` finds out by trying.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

MEGABYTES = 192
BALLAST = ".ballast"
_WAYS = (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"])


def namespace() -> list[str]:
    """Beginning of a command that runs in a mount namespace of its own; empty if that cannot be had here."""
    for way in _WAYS if shutil.which("unshare") else ():
        tried = subprocess.run([*way, "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True)
        if tried.returncode == 0:
            return list(way)
    return []


class Disk:
    """Two disks: one with the workspace, and one with all else that a round writes, the server's data included."""

    def __init__(self, root: Path, is_small: bool) -> None:
        """`is_small`: this process is in a mount namespace of its own, so both are small disks of their own."""
        self.root, self.workspace, self.is_small = root, root / "workspace", is_small
        for place in (self.root, self.workspace):
            place.mkdir()
            if is_small:
                options = ["-t", "tmpfs", "-o", f"size={MEGABYTES}m", "none"]
                subprocess.run(["mount", *options, str(place)], check=True)

    def fill(self, place: Path) -> None:
        """Leave not a byte free on the disk with this directory, `root` or `workspace`."""
        with (place / BALLAST).open("wb", buffering=0) as file, suppress(OSError):
            while free := os.statvfs(place).f_bfree:
                file.write(bytes(min(free * os.statvfs(place).f_bsize, 1 << 24)))

    def clear(self) -> None:
        """Give the space back."""
        for place in (self.root, self.workspace):
            (place / BALLAST).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take the small disks away, with all that is on them."""
        for place in (self.workspace, self.root) if self.is_small else ():
            subprocess.run(["umount", "--lazy", str(place)], check=False)

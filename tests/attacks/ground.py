"""Where an attack takes place: a home, a project in it, a state directory and what lies outside, all made for one cell.

It lies outside /tmp and /run where that is possible, since those are private to a command anyway and would hide what
the rest of the file system shows; the home lies where homes lie.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PLACES = ("/srv", "/var/lib")
"""Where nothing hides a directory; the first that is writable is taken."""
HOMES = Path("/home")
"""Where homes are, if one can be made there: what hides or opens a home may go by that."""
ORDINARY = 52_741
"""User id of the ordinary user where the tests run as root: nobody has it, and no process but ours runs as it."""
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
SECRETS = (".ssh/id_rsa", ".aws/credentials", ".config/gh/hosts.yml")


@dataclass
class Ground:
    """The directories of one cell and what was found in it."""

    base: Path
    home: Path
    uid: int
    canary: str = field(default_factory=lambda: f"canary-{secrets.token_hex(8)}")
    """In every file that a command must not read."""
    id: str = field(default_factory=lambda: str(int(secrets.token_hex(6), 16)))
    tokens: dict[str, str] = field(default_factory=dict)
    """What `@NAME@` stands for, besides the directories; judges add theirs."""
    said: str = ""
    """All that came back from the worker: value, output, error."""

    @property
    def workspace(self) -> Path:
        return self.home / "project"

    @property
    def outside(self) -> Path:
        return self.base / "outside"

    @property
    def state(self) -> Path:
        return self.base / "state"

    @property
    def marker(self) -> Path:
        return self.outside / "marker"

    @property
    def opt(self) -> Path:
        """A directory below one that commands may read, where it can be made."""
        return Path("/opt", self.base.name) if os.access("/opt", os.W_OK) else self.base / "opt"

    def filled(self, text: str) -> str:
        """A text with its tokens."""
        places = {
            "HOME": self.home,
            "WS": self.workspace,
            "OUT": self.outside,
            "STATE": self.state,
            "BASE": self.base,
            "OPT": self.opt,
        }
        known = {name: str(path) for name, path in places.items()}
        known |= {"MARK": str(self.marker), "PY": PYTHON, "PATH": PATH, "ID": self.id, **self.tokens}
        for name, value in known.items():
            text = text.replace(f"@{name}@", value)
        return text

    def put(self, path: Path, text: str | bytes, mode: int = 0o644) -> Path:
        """A file of the user, with the directories above it."""
        self.make(path.parent)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        self.give(path)
        return path

    def make(self, folder: Path) -> Path:
        """A directory of the user."""
        if not folder.exists():
            self.make(folder.parent)
            folder.mkdir()
            self.give(folder)
        return folder

    def give(self, path: Path) -> None:
        """Make it the user's."""
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def own(self, folder: Path) -> None:
        """Make all below a directory the user's."""
        for path in (folder, *folder.rglob("*")):
            self.give(path)

    def run(self, command: str, *, cwd: Path | None = None) -> str:
        """Run a command of the test's own as the user, outside of everything; what it printed."""
        ended = subprocess.run(
            ["/bin/sh", "-c", self.filled(command)],
            cwd=cwd or self.workspace,
            env={"PATH": PATH, "HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            **as_user(self.uid),
        )
        return str(ended.stdout + ended.stderr)

    def loot(self) -> bytes:
        """All that came back, and every file of the workspace."""
        found = [self.said.encode()]
        for folder, _, names in os.walk(self.workspace):
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):
                    if path.is_file() and not path.is_symlink():
                        found.append(path.read_bytes())
        return b"\n".join(found)


def as_user(uid: int) -> dict[str, Any]:
    """What makes subprocess run something as a user; nothing, if that is who we are."""
    return {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 and uid != 0 else {}


def place() -> str:
    """Where grounds are laid."""
    return next((path for path in PLACES if os.access(path, os.W_OK | os.X_OK)), tempfile.gettempdir())


@contextmanager
def ground(uid: int) -> Iterator[Ground]:
    """The ground of one cell, removed afterwards."""
    base = Path(tempfile.mkdtemp(prefix="attack-", dir=place()))
    home = Path(tempfile.mkdtemp(prefix="attack-", dir=HOMES if os.access(HOMES, os.W_OK) else base))
    try:
        base.chmod(0o755)
        laid = Ground(base, home, uid)
        laid.give(home)
        laid.give(base)
        for folder in (laid.outside, laid.workspace, laid.state):
            laid.make(folder)
        laid.home.chmod(0o700)
        laid.state.chmod(0o700)
        for path in (*(laid.home / name for name in SECRETS), laid.outside / "secret", laid.state / "secret"):
            laid.put(path, laid.canary + "\n", 0o600)
        laid.put(laid.outside / "file", "old\n")
        yield laid
    finally:
        for folder in (home, base, Path("/opt", base.name)):
            clear(folder)


def clear(base: Path) -> None:
    """Remove a ground, with whatever an attack as root has done to it: mounts and file attributes."""
    for line in reversed(Path("/proc/mounts").read_text().splitlines()):
        if line.split()[1].startswith(f"{base}/"):
            subprocess.run(["umount", "-l", line.split()[1]], check=False)
    shutil.rmtree(base, ignore_errors=True)
    if base.exists():
        subprocess.run(["chattr", "-R", "-ia", str(base)], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(base)

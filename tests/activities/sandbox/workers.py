"""Workers of two users, root and one without rights, that run commands at a sandbox level in a process of their own.

The ordinary user of a test run by root gets the system's Python and a copy of the sandbox's code that it can read.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from plansurvive.activities.sandbox.sandbox import Level

PROJECT = Path(__file__).parents[3]
NEEDED = (
    *("plansurvive", "activities/sandbox", "activities/tracing", "plans/errors.py", "runtime/base/code_place.py"),
    "runtime/scratch.py",
    "tests/activities/sandbox/worker_program.py",
)
ORDINARY = 54_321
SYSTEM_PYTHON = "/usr/bin/python3"
User = Literal["root", "ordinary"]


@dataclass(frozen=True)
class Said:
    """How a command ended: its exit code, or minus the signal with which the launcher reported a problem."""

    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Worker:
    """A worker, and a place that belongs to its user."""

    user: User
    place: Path
    code: Path
    python: str
    who: dict[str, Any] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """Where its commands may write."""
        return self.place / "workspace"

    def run(
        self,
        level: Level,
        command: str,
        *,
        env: dict[str, str] | None = None,
        protected: tuple[str, ...] = (),
        readable: tuple[Path, ...] = (),
        processes: int = 500,
        before: tuple[str, ...] = (),
        environ: dict[str, str] | None = None,
    ) -> Said:
        """Run a shell command. `before`: a program that starts the worker; `environ`: the worker's own variables."""
        order = {
            "level": level,
            "command": command,
            "env": env or {},
            "processes": processes,
            "workspace": str(self.workspace),
            "state": str(self.place / "state"),
            "protected": [f"{self.workspace}/{path}" for path in protected],
            "readable": [*map(str, readable)],
        }
        ended = subprocess.run(
            [*before, self.python, str(self.code / NEEDED[-1]), json.dumps(order)],
            env={"PATH": os.defpath, "HOME": str(self.place), "PYTHONPATH": str(self.code), **(environ or {})},
            cwd=self.place,
            capture_output=True,
            text=True,
            timeout=150,
            **self.who,
        )
        assert ended.returncode == 0, ended.stderr
        return Said(**json.loads(ended.stdout))


@contextmanager
def a_worker(user: User) -> Iterator[Worker]:
    """A worker in a new directory; the test is skipped where this process neither is nor can become that user."""
    is_root = os.geteuid() == 0
    if user == "root" and not is_root:
        pytest.skip("only root can be root")
    place = Path(tempfile.mkdtemp(prefix="plans-worker-")).resolve()
    try:
        for folder in (place / "workspace", place / "state"):
            folder.mkdir(mode=0o700)
        if user == "root" or not is_root:
            yield Worker(user, place, PROJECT, sys.executable)
        else:
            yield _ordinary(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _ordinary(place: Path) -> Worker:
    version = subprocess.run(
        [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info >= (3, 11))"], capture_output=True
    )
    if version.stdout != b"True\n":
        pytest.skip(f"{SYSTEM_PYTHON} is not there, or too old: an ordinary user needs a Python that it can read")
    for name in NEEDED:
        target = place / "code" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = PROJECT / name
        shutil.copytree(source, target, symlinks=True) if source.is_dir() else shutil.copy(source, target)
    for path in (place, *place.rglob("*")):
        os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)
    who: dict[str, Any] = {"user": ORDINARY, "group": ORDINARY, "extra_groups": []}
    return Worker("ordinary", place, place / "code", SYSTEM_PYTHON, who)

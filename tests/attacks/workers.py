"""Starts the worker's side of attacks as root or as an ordinary user, with an interpreter that this user may run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pydantic

from tests.attacks.attack import Case, User
from tests.attacks.ground import ORDINARY, PATH, Ground, as_user, place

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = ("plansurvive", "activities", "plans", "runtime", "tests/attacks")
IGNORED = shutil.ignore_patterns("__pycache__")
WORKER_KEY = "canary-of-the-worker-0d9c1f"
"""The LLM's key in the worker's environment."""


def uid_of(user: User) -> int:
    """The id of the user that a worker runs as."""
    return 0 if user == "root" else os.geteuid() or ORDINARY


@dataclass
class WorkerSide:
    """A running `tests.attacks.worker_side`."""

    process: subprocess.Popen[bytes]
    uid: int
    asked: int = 0
    levels: dict[str, str] = field(default_factory=dict)

    def answer(self, ground: Ground, case: Case) -> dict[str, Any]:
        """What came back from a step with the attack's command."""
        spelling = case.spelling
        command = spelling.command
        if spelling.python:
            ground.put(ground.workspace / ".attack.py", ground.filled(spelling.python))
            command = f"@PY@ {ground.workspace}/.attack.py"
        args: dict[str, Any] = {"command": ground.filled(command), "cwd": spelling.cwd, "network": spelling.network}
        if spelling.env:
            args["env"] = {name: ground.filled(value) for name, value in spelling.env.items()}
        environ = {
            "PATH": PATH,
            "HOME": str(ground.home),
            "PLANS_STATE_DIR": str(ground.state),
            "PLANS_SANDBOX": case.level,
            **{name: ground.filled(value) for name, value in spelling.worker.items()},
        }
        return self._ask({"args": args, "environ": environ, "workspace": str(ground.workspace)})

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self.asked += 1
        self.process.stdin.write(json.dumps({**request, "id": self.asked}).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the worker's side has ended; see its error output"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def worker_side(user: User) -> Iterator[WorkerSide]:
    """A worker's side that runs as a user."""
    uid = uid_of(user)
    copied = Path(tempfile.mkdtemp(prefix="attack-code-", dir=place()))
    copied.chmod(0o755)
    try:
        interpreter, path = _interpreter(uid), [str(folder) for folder in _code(uid, copied)]
        environ = {"PATH": PATH, "PYTHONPATH": os.pathsep.join(path), "OPENAI_API_KEY": WORKER_KEY, "HOME": "/"}
        process = subprocess.Popen(
            [interpreter, "-B", "-m", "tests.attacks.worker_side"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environ,
            cwd="/",
            start_new_session=True,
            **as_user(uid),
        )
        try:
            yield WorkerSide(process, uid)
        finally:
            assert process.stdin
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.wait(60)
            assert process.stdout
            process.stdout.close()
    finally:
        shutil.rmtree(copied)


def _interpreter(uid: int) -> str:
    """An interpreter of this version that the user may start: ours, or the system's where ours lies in a home."""
    major, minor = sys.version_info[:2]
    wanted = f"import sys; sys.exit(sys.version_info[:2] != ({major}, {minor}))"
    for program in (sys.executable, f"/usr/bin/python{major}.{minor}", f"/usr/local/bin/python{major}.{minor}"):
        with suppress(OSError):
            if not subprocess.run([program, "-c", wanted], stderr=subprocess.DEVNULL, **as_user(uid)).returncode:
                return program
    raise AssertionError(f"user {uid} may run no Python of this version: install python3 for everybody")


def _code(uid: int, copied: Path) -> Iterator[Path]:
    """Our code and the packages it needs, copied where the user may not read them."""
    packages = Path(pydantic.__file__).parent.parent
    for folder, names in ((ROOT, OURS), (packages, ())):
        if not subprocess.run(["test", "-r", str(folder), "-a", "-x", str(folder)], **as_user(uid)).returncode:
            yield folder
            continue
        to = copied / folder.name
        for name in names or [""]:
            shutil.copytree(folder / name, to / name, symlinks=True, ignore=IGNORED)
        yield to

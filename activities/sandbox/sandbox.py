"""The sandbox for commands: which level the host supports, and how a command is confined at that level.

Level 2 (`bwrap`, bubblewrap): an allow-list of the host, read-only; the workspace writable, except existing protected
files; a PID namespace that dies with the worker. Level 1 (`landlock`): reads and writes restricted to the same places.
Level 0 (`none`): the rights of the worker's user. At levels 1 and 2 the commands of a root worker run as a user of
their own without capabilities; where the host does not permit that, they are refused. PLANS_SANDBOX selects: `auto` the
strongest level that works here, `required` and `bwrap` level 2 or refuse, `landlock` level 1 or refuse, `off` none.
Support is probed by running a command, not by version. Resource limits apply at every level.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from plansurvive.activities.sandbox import bubblewrap, landlock, seccomp
from plansurvive.activities.sandbox.process import Order, environment, tried
from plansurvive.activities.sandbox.root_view import is_below, root_view
from plansurvive.plans.errors import ToolError
from plansurvive.runtime.base.code_place import IMPORTED_FROM
from plansurvive.runtime.scratch import FOLDER as SCRATCH
from plansurvive.runtime.scratch import scratch_of

Level = Literal["bwrap", "landlock", "none"]
Mode = Literal["auto", "off", "required", "landlock", "bwrap"]
Network = Literal["step", "on", "off"]
"""Which commands have network access: those of steps that ask for it, all, none."""

PROBE_SECONDS, PROBES = 20.0, 3
_DEVICES = ("null", "zero", "full", "random", "urandom")
"""Devices of level 1. No terminals: they are those of the worker's user."""
_PROBE = """
[ "$(id -u)" != 0 ] || { echo "commands would run as root" >&2; exit 8; }
for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/overcommit_memory /proc/sysrq-trigger
do [ ! -w $file ] || { echo "$file would be writable" >&2; exit 8; }
done
: > probe && rm probe && exit 7
"""
"""What must hold in a sandbox; exit code 7 if it does."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of a command, per process unless noted; None: the worker's own limit."""

    cpu: int | None = None
    """CPU time, in seconds."""
    file: int | None = None
    """File size, in bytes."""
    memory: int | None = None
    """Address space, in bytes."""
    open_files: int = 4_096
    processes: int | None = None
    """Concurrent processes of the whole command."""
    free: int | None = None
    """Bytes that must stay free on the disks it writes to; for the whole command."""


@dataclass(frozen=True)
class Sandbox:
    """The sandbox configuration of a worker, applied to every command."""

    level: Level = "none"
    problem: str = ""
    """Why commands are refused: the requested level is unavailable."""
    network: Network = "step"
    limits: Limits = Limits()
    state: Path | None = None
    """The worker's state directory, hidden from commands."""
    readable: tuple[str, ...] = ()
    """Additional readable directories below the home or another hidden place."""

    def has_network(self, asked: bool) -> bool:
        """Whether a command has network access, given whether its step asked for it. Raises ToolError NO_NETWORK."""
        if asked and self.network == "off" and self.level != "none":
            raise ToolError(
                "NO_NETWORK",
                "the step sets `network: true`, but this worker has PLANS_SANDBOX_NETWORK=off; change one of them",
            )
        return self.level == "none" or self.network == "on" or asked

    def confine(
        self,
        command: Sequence[str],
        workspace: str,
        directory: str,
        protected: Iterable[str],
        extra: Mapping[str, str],
        *,
        network: bool = False,
        owner: str = "",
        writable: Sequence[str] = (),
    ) -> Order:
        """The order to run a command in a directory of the workspace.

        `protected`: absolute paths to bind read-only; `extra`: variables that the step sets; `network`: the step asks
        for network access; `owner`: the run of a plan whose commands share /tmp, else those of tool servers in the
        workspace do; `writable`: further directories that it may change.

        Raises ToolError SANDBOX_UNAVAILABLE, NO_NETWORK, RESOURCE_LIMIT (more protected files than can be bound).
        """
        if self.problem:
            raise ToolError("SANDBOX_UNAVAILABLE", self.problem)
        open_, limits = self.has_network(network), dict(vars(self.limits))
        if self.level == "none":
            env = environment(os.environ, workspace, extra)
            return Order(list(command), env, directory, limits, [workspace])
        temporary = self.temporary(workspace, owner)
        view = root_view(workspace, self.state, self.readable)
        drop: dict[str, list[str]] = {}
        bwrap: list[str] = []
        rule: dict[str, Any] = {}
        if os.geteuid() == 0:
            drop = {"owned": list(dict.fromkeys((workspace, temporary, *writable))), "needed": list(view.more)}
        if self.level == "bwrap":
            kept = [*protected, *_own_code(workspace)]
            shut = bubblewrap.arguments(view, workspace, temporary, directory, kept, network=open_)
            binds = (part for place in writable for part in ("--bind", place, place))
            bwrap = [bubblewrap.program(), *shut, *binds]
        else:
            rule = self._landlock(workspace, temporary, [*view.readable()], open_)
            rule["writable"] += writable
        inside = "/tmp" if bwrap else temporary  # noqa: S108
        env = environment(os.environ, workspace, {"TMPDIR": inside, **extra})
        return Order(list(command), env, directory, limits, [workspace, temporary], bwrap, rule, drop)

    def _landlock(self, workspace: str, temporary: str, readable: list[str], network: bool) -> dict[str, Any]:
        writable = [workspace, temporary, *(f"/dev/{name}" for name in _DEVICES)]
        if os.geteuid() == 0:
            writable.append("/dev/shm")  # a file system of the command's own  # noqa: S108
        return {"writable": writable, "readable": [*readable, "/proc"], "network": network}

    def temporary(self, workspace: str, owner: str) -> str:
        """The directory that is /tmp for the commands of a run of a plan; without one, in a workspace."""
        base = self.state or Path(tempfile.gettempdir()) / f"plans-{os.geteuid()}"
        if owner:
            return str(scratch_of(base, owner).resolve())
        place = base / SCRATCH / "shared" / hashlib.sha256(workspace.encode()).hexdigest()[:16]
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(place.resolve())


def choose(
    mode: Mode,
    *,
    network: Network = "step",
    limits: Limits | None = None,
    state: Path | None = None,
    readable: Iterable[str] = (),
    places: tuple[str, ...] = bubblewrap.PROGRAMS,
) -> Sandbox:
    """The sandbox for a setting on this host. `places`: where to look for bubblewrap."""
    level, problem = _level(mode, places)
    place = state.absolute() if state else None
    return Sandbox(level, problem, network, limits or Limits(), place, tuple(readable))


def missing(places: tuple[str, ...] = bubblewrap.PROGRAMS) -> dict[Level, str]:
    """The levels this host does not support, and why."""
    found: dict[Level, str] = {"bwrap": _bwrap_problem(places), "landlock": _landlock_problem()}
    return {level: problem for level, problem in found.items() if problem}


def _level(mode: Mode, places: tuple[str, ...]) -> tuple[Level, str]:
    lacking = missing(places) if mode != "off" else {}
    if mode == "off":
        return "none", ""
    if mode == "auto":
        level: Level = "bwrap" if "bwrap" not in lacking else "landlock" if "landlock" not in lacking else "none"
        if level == "none" and os.geteuid() == 0 and sys.platform == "linux":
            return level, (
                "the worker runs as root, and its commands cannot be given an unprivileged user here"
                f" ({lacking['landlock']}); run the worker as an ordinary user, or accept that commands have all rights"
                " of root with PLANS_SANDBOX=off"
            )
        return level, ""
    wanted: Level = "landlock" if mode == "landlock" else "bwrap"
    if wanted not in lacking:
        return wanted, ""
    text = f"PLANS_SANDBOX={mode}, but {lacking[wanted]}; install or enable it, or set PLANS_SANDBOX=auto"
    return "none", text


@cache
def _bwrap_problem(places: tuple[str, ...]) -> str:
    """Why bubblewrap is unusable; empty if a probe command runs in it and finds itself confined."""
    if not bubblewrap.program(places):
        return "`bwrap` is not installed (package bubblewrap)"
    return _probed("bwrap", "bubblewrap does not work here")


@cache
def _landlock_problem() -> str:
    if not landlock.abi():
        return "the kernel does not support Landlock, or it is disabled"
    if os.geteuid() == 0 and not seccomp.is_possible():
        return "a root worker needs a seccomp filter, and none is known for this kind of processor"
    return _probed("landlock", "Landlock does not work here")


def _probed(level: Level, problem: str) -> str:
    """What is wrong with a level, found by running a command at it in a new directory.

    Tried again when it fails: a socket that vanishes while bubblewrap covers it ends one start, and must not cost the
    worker its level.
    """
    said = ""
    for _ in range(PROBES):
        said = _tried(level)
        if not said:
            return ""
    return f"{problem}: {said}"


def _tried(level: Level) -> str:
    """What went wrong with one command at a level; empty if it found itself confined."""
    with tempfile.TemporaryDirectory(prefix="plans-probe-") as place:
        workspace = os.path.realpath(place)
        command = ["/bin/sh", "-c", _PROBE]
        sandbox = Sandbox(level, state=Path(workspace, "state"))
        try:
            ended = tried(sandbox.confine(command, workspace, workspace, (), {}), PROBE_SECONDS)
        except (OSError, ToolError, subprocess.TimeoutExpired) as error:
            return str(error) or type(error).__name__
    said = ended.stderr.decode("utf-8", "replace").strip()[:300]
    return "" if ended.returncode == 7 else said or str(ended.returncode)


def _own_code(workspace: str) -> list[str]:
    """What the worker itself runs, where it lies in the workspace: a command that changed it would run outside."""
    places = (sys.prefix, sys.base_prefix, str(IMPORTED_FROM))
    return [place for place in places if is_below(place, workspace)]


def describe(sandbox: Sandbox) -> str:
    """One sentence for people about what commands can do on this host."""
    if sandbox.problem:
        return f"commands are refused: {sandbox.problem}"
    words: Mapping[Level, str] = {
        "bwrap": "level 2 (bubblewrap): commands write to the workspace only, homes and the worker's data are hidden",
        "landlock": "level 1 (Landlock): commands write to the workspace only, homes and the worker's data are hidden;"
        " not guarded are protected files of the workspace (changes of them are reported), permission bits, owners and"
        " times of the user's other files, and named Unix sockets",
        "none": "level 0: commands run with all permissions of the worker's user",
    }
    networks: Mapping[Network, str] = {
        "step": "network access only for steps that request it",
        "on": "network access for all, so a command may reach the Temporal server and approve its own plan",
        "off": "no network access",
    }
    return f"{words[sandbox.level]}; {networks['on' if sandbox.level == 'none' else sandbox.network]}"

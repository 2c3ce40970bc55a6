"""The sandbox for commands: which level the host supports, and how a command is wrapped at that level.

Level 2 (`bwrap`, bubblewrap): the host read-only and without homes, the worker's state and temporary files; the
workspace writable, except existing protected files; a PID namespace that dies with the worker. Level 1 (`landlock`):
reads and writes restricted to the same places. Level 0 (`none`): the rights of the worker's user. PLANS_SANDBOX
selects: `auto` the strongest level that works here, `required` and `bwrap` level 2 or refuse, `landlock` level 1 or
refuse, `off` none. Support is probed by running a command, not by version. Resource limits apply at every level.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from activities.sandbox import landlock
from plans.errors import ToolError

Level = Literal["bwrap", "landlock", "none"]
Mode = Literal["auto", "off", "required", "landlock", "bwrap"]
Network = Literal["step", "on", "off"]
"""Which commands have network access: those of steps that ask for it, all, none."""

MAX_PROTECTED = 200
"""Maximum number of protected files bound read-only per command."""
PROBE_SECONDS = 10.0
_LAUNCHER = str(Path(__file__).with_name("launcher.py"))
_SECRET_FILES = ("etc/shadow*", "etc/gshadow*", "etc/sudoers", "etc/ssh/ssh_host_*_key", "etc/ssl/private")
_KEPT_CAPABILITIES = ("CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN")
"""Capabilities that root needs to work in another user's directory; all others are dropped."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


_TOOLS_AT_HOME = (
    *(".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".asdf", ".nvm", ".volta", ".fnm", ".bun", ".deno", ".rustup"),
    *(".cargo", ".sdkman", ".ghcup", ".opam", ".juliaup", ".dotnet", ".nix-profile", "go", "miniconda3", "anaconda3"),
    *(".local/bin", ".local/lib", ".local/share/uv", ".local/share/pipx", ".local/share/mise", ".local/share/pnpm"),
)
"""Directories in a home where programs are installed."""
_SECRETS_OF_TOOLS = (".cargo/credentials*",)


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
class Confined:
    """A wrapped command, ready to launch."""

    command: list[str]
    rules: dict[str, Any] = field(default_factory=dict)
    """The RULES argument of `activities.sandbox.launcher`."""
    env: dict[str, str] = field(default_factory=dict)


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
        self, command: Sequence[str], workspace: str, directory: str, protected: Iterable[str], *, network: bool = False
    ) -> Confined:
        """Wrap a command. `protected`: absolute paths to bind read-only; `network`: the step asks for network access.

        Raises ToolError SANDBOX_UNAVAILABLE, NO_NETWORK.
        """
        if self.problem:
            raise ToolError("SANDBOX_UNAVAILABLE", self.problem)
        open_ = self.has_network(network)
        rules: dict[str, Any] = {"limits": vars(self.limits), "disks": [workspace]}
        if self.level == "none":
            return Confined(list(command), rules)
        temporary = self._temporary(workspace)
        rules["disks"].append(temporary)
        if self.level == "bwrap":
            wrapped = [*self._bwrap(workspace, directory, temporary, protected, open_), "--", *command]
            return Confined(wrapped, {**rules, "wrapped": True}, {"TMPDIR": "/tmp"})  # noqa: S108
        reading = [*_without("/", self._hidden()), *self._visible(workspace)]
        writing = [workspace, temporary, *(f"/dev/{name}" for name in _DEVICES)]
        rule = {"writable": writing, "readable": reading, "network": open_}
        return Confined(list(command), {**rules, "landlock": rule}, {"TMPDIR": temporary})

    def _bwrap(
        self, workspace: str, directory: str, temporary: str, protected: Iterable[str], network: bool
    ) -> Iterator[str]:
        yield from (_program(), "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
        yield from ("--unshare-cgroup-try", *([] if network else ["--unshare-net"]))
        yield from ("--cap-drop", "ALL", *_capabilities())
        yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
        for path in self._hidden():
            yield from ("--tmpfs", path) if Path(path).is_dir() else ("--ro-bind", "/dev/null", path)
        yield from ("--bind", temporary, "/tmp")  # noqa: S108
        for path in self._visible(workspace):
            yield from ("--ro-bind", path, path)
        yield from ("--bind", workspace, workspace)
        if self.state is not None and _is_below(str(self.state), workspace) and self.state.exists():
            yield from ("--tmpfs", str(self.state))
        for path in list(protected)[:MAX_PROTECTED]:
            yield from ("--ro-bind-try", path, path)
        yield from ("--chdir", directory)

    def _hidden(self) -> list[str]:
        """Paths hidden from commands: homes, the worker's state, temporary files, service sockets, keys."""
        places = {str(Path.home()), "/root", "/home", "/run", "/tmp", "/var/tmp", tempfile.gettempdir()}  # noqa: S108
        places |= {str(self.state)} if self.state else set()
        places |= {str(path) for pattern in _SECRET_FILES for path in Path("/").glob(pattern)}
        found = sorted({os.path.realpath(path) for path in places if Path(path).exists()} - {"/"})
        return [path for path in found if not any(_is_below(path, other) for other in found)]

    def _visible(self, workspace: str) -> list[str]:
        """Paths visible although hidden by a parent: Python, PATH entries, tools installed in homes, resolv.conf."""
        hidden = self._hidden()
        searched = [_installed(path, hidden) for path in os.environ.get("PATH", "").split(os.pathsep)]
        homes = [str(Path.home() / name) for name in _TOOLS_AT_HOME]
        wanted = [sys.prefix, sys.base_prefix, *searched, *homes, os.path.realpath("/etc/resolv.conf")]
        secrets = [str(path) for name in _SECRETS_OF_TOOLS for path in Path.home().glob(name)]
        wanted = [part for path in wanted if Path(path).exists() for part in _without(path, secrets)] + [*self.readable]
        real = [path for path in wanted if Path(path).is_absolute() and Path(path).exists()]
        found = [path for path in dict.fromkeys(real) if any(_is_below(os.path.realpath(path), one) for one in hidden)]
        return [path for path in found if not _is_below(path, workspace) and not self._is_state(path)]

    def _is_state(self, path: str) -> bool:
        return self.state is not None and (path == str(self.state) or _is_below(str(self.state), path))

    def _temporary(self, workspace: str) -> str:
        """A temporary directory shared by all commands in the workspace."""
        name = hashlib.sha256(workspace.encode()).hexdigest()[:16]
        base = self.state or Path(tempfile.gettempdir()) / f"plans-{os.geteuid()}"
        place = base / "tmp" / name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(place.resolve())


def choose(
    mode: Mode,
    *,
    network: Network = "step",
    limits: Limits | None = None,
    state: Path | None = None,
    readable: Iterable[str] = (),
    path: str | None = None,
) -> Sandbox:
    """The sandbox for a setting on this host. `path` replaces PATH when searching for bubblewrap."""
    level, problem = _level(mode, path)
    place = state.absolute() if state else None
    return Sandbox(level, problem, network, limits or Limits(), place, tuple(readable))


def missing(path: str | None = None) -> dict[Level, str]:
    """The levels this host does not support, and why."""
    found: dict[Level, str] = {"bwrap": _bwrap_problem(path)}
    found["landlock"] = "" if landlock.abi() else "the kernel does not support Landlock, or it is disabled"
    return {level: problem for level, problem in found.items() if problem}


def _level(mode: Mode, path: str | None) -> tuple[Level, str]:
    lacking = missing(path) if mode != "off" else {}
    if mode == "off":
        return "none", ""
    if mode == "auto":
        return ("bwrap" if "bwrap" not in lacking else "landlock" if "landlock" not in lacking else "none"), ""
    wanted: Level = "landlock" if mode == "landlock" else "bwrap"
    if wanted not in lacking:
        return wanted, ""
    text = f"PLANS_SANDBOX={mode}, but {lacking[wanted]}; install or enable it, or set PLANS_SANDBOX=auto"
    return "none", text


@cache
def _bwrap_problem(path: str | None) -> str:
    """Why bubblewrap is unusable; empty if a probe command runs in it."""
    if not shutil.which("bwrap", path=path):
        return "`bwrap` is not installed (package bubblewrap)"
    command = [*Sandbox("bwrap")._bwrap("/usr", "/usr", "/usr", (), network=False), "--", "/bin/sh", "-c", "exit 7"]
    try:
        ended = _tried(command)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    said = ended.stderr.decode("utf-8", "replace").strip()[:300]
    return "" if ended.returncode == 7 else f"bubblewrap does not work here: {said or ended.returncode}"


def _tried(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Run a command through the launcher, so that no process is left behind, not even a zombie."""
    control, held = os.pipe()
    directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    launcher = [sys.executable, "-I", "-S", _LAUNCHER, str(control), str(directory), "1", "{}"]
    try:
        return subprocess.run(
            [*launcher, *command],
            capture_output=True,
            timeout=PROBE_SECONDS,
            stdin=subprocess.DEVNULL,
            pass_fds=(control, directory),
        )
    finally:
        for descriptor in (control, held, directory):
            os.close(descriptor)


def _installed(directory: str, hidden: Sequence[str]) -> str:
    """The installation a PATH directory belongs to: `shims` and `bin` need their sibling directories."""
    path = Path(directory)
    above = str(path.parent)
    is_part = path.name in ("bin", "sbin", "shims") and path.parent.name != ".local"
    return above if is_part and any(_is_below(above, place) for place in hidden) else directory


def _program() -> str:
    return shutil.which("bwrap") or "bwrap"


def _capabilities() -> Iterator[str]:
    if os.geteuid() == 0:
        for name in _KEPT_CAPABILITIES:
            yield from ("--cap-add", name)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _without(top: str, hidden: Sequence[str]) -> Iterator[str]:
    """The largest subtrees of a directory that contain none of the hidden paths."""
    if top in hidden:
        return
    if not any(_is_below(path, top) for path in hidden):
        yield top
        return
    with os.scandir(top) as entries:
        names = sorted(entry.path for entry in entries if not entry.is_symlink())
    for path in names:
        yield from _without(path, hidden)


def describe(sandbox: Sandbox) -> str:
    """One sentence for people about what commands can do on this host."""
    if sandbox.problem:
        return f"commands are refused: {sandbox.problem}"
    words: Mapping[Level, str] = {
        "bwrap": "level 2 (bubblewrap): commands write to the workspace only, homes and the worker's data are hidden",
        "landlock": "level 1 (Landlock): commands write to the workspace only, homes and the worker's data are hidden;"
        " not guarded are protected files of the workspace (changes of them are reported), permission bits, owners and"
        " times of the user's other files, and named Unix sockets",
        "none": "level 0: commands have all rights of the worker's user",
    }
    networks: Mapping[Network, str] = {
        "step": "network access only for steps that request it",
        "on": "network access for all, so a command may reach the Temporal server and approve its own plan",
        "off": "no network access",
    }
    return f"{words[sandbox.level]}; {networks['on' if sandbox.level == 'none' else sandbox.network]}"

"""Judges of what attacks do to running processes, terminals, sockets and shared memory; see `tests.attacks.judges`."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tests.attacks.ground import Ground, as_user
from tests.attacks.judges import Escaped, Judging, stolen
from tests.kit.host import running

HEARD_SECONDS = 0.3
"""How long a listener waits for what may come after the command has ended; what came before is in its queue."""


def held_open(wanted: Callable[[Path, Path], bool]) -> Callable[[Ground], Judging]:
    """A judge that looks at the descriptors of all processes while the command runs.

    `wanted` gets /proc/PID/fd/N and /proc/PID/fdinfo/N of the processes that were started with the workspace's name.
    """

    @contextmanager
    def judge(ground: Ground) -> Iterator[Escaped]:
        ended, seen = threading.Event(), threading.Event()

        def look() -> None:
            while not ended.wait(0.02) and not seen.is_set():
                if any(wanted(*each) for each in _descriptors(str(ground.workspace))):
                    seen.set()

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield seen.is_set
        finally:
            ended.set()
            watcher.join()

    return judge


def _descriptors(ours: str) -> Iterator[tuple[Path, Path]]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if ours.encode() in (folder / "cmdline").read_bytes():
                for entry in (folder / "fd").iterdir():
                    yield entry, folder / "fdinfo" / entry.name


def opened_to_write(path: str) -> Callable[[Path, Path], bool]:
    """Whether a descriptor is a file of this name, open for writing."""

    def wanted(entry: Path, about: Path) -> bool:
        with suppress(OSError, IndexError, ValueError):
            if str(entry.readlink()).endswith(path):
                flags = next(line for line in about.read_text().splitlines() if line.startswith("flags:"))
                return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
        return False

    return wanted


USUAL = ("UNIX", "UNIX-STREAM", "NETLINK", "TCP", "TCPv6", "UDP", "UDPv6", "MPTCP", "MPTCPv6")


def socket_of(*families: str) -> Callable[[Path, Path], bool]:
    """Whether a descriptor is a socket of a protocol, as the kernel names it; of any unusual one, if none is named."""

    def wanted(entry: Path, _: Path) -> bool:
        with suppress(OSError):
            if str(entry.readlink()).startswith("socket:"):
                name = os.getxattr(entry, "system.sockprotoname").rstrip(b"\0").decode()
                return name in families if families else name not in USUAL
        return False

    return wanted


def processes(ground: Ground) -> list[int]:
    """The processes that a command of this ground left: they sleep as long as nobody else's."""
    return [int(pid) for pid in running(f"sleep {ground.filled('300.@ID@')}")]


@contextmanager
def left_running(ground: Ground) -> Iterator[Escaped]:
    """A process of the command lives on."""
    try:
        yield lambda: bool(processes(ground))
    finally:
        while left := processes(ground):
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)


@contextmanager
def bystander(ground: Ground, terminal: int = subprocess.DEVNULL, argument: str = "1000") -> Iterator[psutil.Process]:
    """A process of the same user that has nothing to do with the plan; its environment has the canary."""
    environ = {"PATH": "/usr/bin:/bin", "SECRET": ground.canary}
    process = subprocess.Popen(["sleep", "1000", argument], stdin=terminal, env=environ, cwd="/", **as_user(ground.uid))
    try:
        ground.tokens["PID"] = str(process.pid)
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


@contextmanager
def spied_on(ground: Ground) -> Iterator[Escaped]:
    """The canary in the environment of another process came back."""
    with bystander(ground), stolen(ground) as escaped:
        yield escaped


@contextmanager
def overheard(ground: Ground) -> Iterator[Escaped]:
    """A secret among the arguments of another process came back."""
    number = str(int(ground.canary.removeprefix("canary-"), 16))
    with bystander(ground, argument=number):
        yield lambda: number.encode() in ground.loot()


@contextmanager
def disturbed(ground: Ground) -> Iterator[Escaped]:
    """Another process was ended, stopped, or its priority, processors or limits were changed."""
    with bystander(ground) as process:

        def look() -> tuple[object, ...]:
            if process.status() not in GOING:
                return ()
            limits = Path("/proc", str(process.pid), "limits").read_text()
            return (process.nice(), process.cpu_affinity(), limits, process.ionice())

        before = look()
        yield lambda: look() != before


GOING = (psutil.STATUS_SLEEPING, psutil.STATUS_RUNNING)


@contextmanager
def typed(ground: Ground) -> Iterator[Escaped]:
    """Something was written to, or typed into, a terminal of the user."""
    with ExitStack() as stack:
        master, slave = os.openpty()
        for descriptor in (master, slave):
            stack.callback(os.close, descriptor)
        ground.tokens["TTY"] = os.ttyname(slave)
        os.chown(ground.tokens["TTY"], ground.uid, -1)
        os.set_blocking(master, False)
        os.set_blocking(slave, False)
        stack.enter_context(bystander(ground, slave))

        def look() -> bool:
            for descriptor in (master, slave):
                with suppress(BlockingIOError):
                    if os.read(descriptor, 1_000):
                        return True
            return False

        yield look


def reached(kind: socket.SocketKind, address: Callable[[Ground], tuple[int, object]]) -> Callable[[Ground], Judging]:
    """A judge that listens at an address, with whatever `kind` of socket, and hears whether somebody came."""

    @contextmanager
    def judge(ground: Ground) -> Iterator[Escaped]:
        family, where = address(ground)
        with socket.socket(family, kind) as listener:
            listener.bind(where)  # type: ignore[arg-type]
            if family == socket.AF_UNIX and isinstance(where, str):
                Path(where).chmod(0o777)
                ground.give(Path(where))
            else:
                ground.tokens["PORT"] = str(listener.getsockname()[1])
            if kind == socket.SOCK_STREAM:
                listener.listen()
            listener.settimeout(HEARD_SECONDS)

            def heard() -> bool:
                with suppress(TimeoutError):
                    if kind == socket.SOCK_STREAM:
                        listener.accept()[0].close()
                        return True
                    return bool(listener.recv(100))
                return False

            yield heard

    return judge


@contextmanager
def told_by_netlink(ground: Ground) -> Iterator[Escaped]:
    """A process of the host hears a message on netlink's channel for programs."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_USERSOCK) as listener:
        listener.bind((0, 0))
        ground.tokens["PORT"] = str(listener.getsockname()[0])
        listener.settimeout(HEARD_SECONDS)

        def heard() -> bool:
            with suppress(TimeoutError):
                return bool(listener.recv(100))
            return False

        yield heard


@contextmanager
def ipc_left(ground: Ground) -> Iterator[Escaped]:
    """A System V object, or a shared memory file, with the ground's key is on the host; it is removed."""
    key = int(ground.id) % 2**30 + 1
    ground.tokens["KEY"] = str(key)
    shared = Path("/dev/shm") / f"attack-{ground.id}"
    removals = {"shm": "-M", "sem": "-S", "msg": "-Q"}

    def left() -> list[str]:
        tables = {kind: Path("/proc/sysvipc", kind).read_text().splitlines()[1:] for kind in removals}
        return [kind for kind, rows in tables.items() if any(int(row.split()[0]) == key for row in rows)]

    try:
        yield lambda: bool(left()) or shared.exists()
    finally:
        for kind in left():
            subprocess.run(["ipcrm", removals[kind], str(key)], check=False)
        shared.unlink(missing_ok=True)


@contextmanager
def key_left(ground: Ground) -> Iterator[Escaped]:
    """A key ring of the user has the ground's key."""
    code = (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        "for ring in (-4, -5):\n"
        "    key = libc.syscall(250, 10, ring, b'user', b'attack-@ID@', 0)\n"
        "    if key > 0: print('found'); libc.syscall(250, 9, key, ring)\n"
    )
    ground.put(ground.outside / "look.py", ground.filled(code))
    yield lambda: "found" in ground.run("@PY@ @OUT@/look.py")

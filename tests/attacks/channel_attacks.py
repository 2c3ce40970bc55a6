"""Channels to what runs outside: sockets, terminals, shared memory, key rings, and processes that are left behind."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from tests.attacks.attack import HELD, HELD_FOR_ROOT, NAMED, NOWHERE, ONLY_ROOT, Attack, Expected, Judge, Spelling
from tests.attacks.ground import Ground
from tests.attacks.process_judges import (
    held_open,
    ipc_left,
    key_left,
    left_running,
    reached,
    socket_of,
    told_by_netlink,
    typed,
)

STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM


def _named(folder: str) -> Callable[[Ground], tuple[int, object]]:
    """A socket below a directory of the ground."""

    def address(ground: Ground) -> tuple[int, object]:
        path = ground.make(Path(ground.filled(folder))) / "s"
        ground.tokens["SOCKET"] = str(path)
        return socket.AF_UNIX, str(path)

    return address


def _abstract(ground: Ground) -> tuple[int, object]:
    return socket.AF_UNIX, b"\0attack-" + ground.id.encode()


def _loopback(family: int, host: str) -> Callable[[Ground], tuple[int, object]]:
    return lambda _: (family, (host, 0))


SEND = """
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_%s)
s.connect(%s)
s.send(b"x")
"""
STREAMED, SENT = SEND % ("STREAM", '"@SOCKET@"'), SEND % ("DGRAM", '"@SOCKET@"')
BASE, HOME, SYSTEM = _named("@BASE@/sockets"), _named("@HOME@/.agent"), _named("@OPT@")
LINKED = (
    """
import os
os.symlink("@BASE@/sockets", "l")
"""
    + SEND % ("STREAM", '"l/s"')
)
HARD = (
    """
import os
os.link("@SOCKET@", "l")
"""
    + SEND % ("STREAM", '"l"')
)
MOVED = (
    """
import os
os.rename("@SOCKET@", "l")
"""
    + SEND % ("STREAM", '"l"')
)
BY_ROOT = SEND % ("STREAM", "f\"/proc/{__import__('os').getppid()}/root@SOCKET@\"")
BY_DESCRIPTOR = (
    """
import os
at = os.open("@BASE@/sockets", os.O_PATH)
"""
    + SEND % ("STREAM", 'f"/proc/self/fd/{at}/s"')
)

NAMED_SOCKETS = Attack(
    "named Unix sockets",
    reached(STREAM, BASE),
    (
        Spelling("a stream", python=STREAMED),
        Spelling("a datagram", python=SENT, judge=reached(DATAGRAM, BASE)),
        Spelling("in a home", python=STREAMED, judge=reached(STREAM, HOME), expected=HELD_FOR_ROOT),
        Spelling("in a system directory", python=STREAMED, judge=reached(STREAM, SYSTEM)),
        Spelling("by a link", python=LINKED),
        Spelling("by a hard link", python=HARD, expected=HELD),
        Spelling("moved into the workspace", python=MOVED, expected=HELD),
        Spelling("by the root of a process", python=BY_ROOT),
        Spelling("by a descriptor", python=BY_DESCRIPTOR),
    ),
    expected=NAMED,
)

ABSTRACT = 'b"\\0attack-@ID@"'
BY_THREAD = """
import threading
def go():
    @CODE@
t = threading.Thread(target=go); t.start(); t.join()
""".replace("@CODE@", (SEND % ("STREAM", ABSTRACT)).replace("\n", "\n    "))
SENT_TO = f'import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", {ABSTRACT})'


def _abstract_spellings(network: bool) -> tuple[Spelling, ...]:
    ways = {
        "a stream": (SEND % ("STREAM", ABSTRACT), None),
        "a datagram": (SEND % ("DGRAM", ABSTRACT), reached(DATAGRAM, _abstract)),
        "a message without a connection": (SENT_TO, reached(DATAGRAM, _abstract)),
        "by a thread": (BY_THREAD, None),
    }
    return tuple(Spelling(name, python=code, judge=judge, network=network) for name, (code, judge) in ways.items())


ABSTRACT_SOCKETS = Attack("abstract Unix sockets", reached(STREAM, _abstract), _abstract_spellings(network=False))
ABSTRACT_WITH_NETWORK = Attack(
    "abstract Unix sockets, by a step with network access",
    reached(STREAM, _abstract),
    _abstract_spellings(network=True),
)


def _connect(code: str) -> str:
    return f"import socket\n{code}\n"


LOCAL = reached(STREAM, _loopback(socket.AF_INET, "127.0.0.1"))
LOCAL_6 = reached(STREAM, _loopback(socket.AF_INET6, "::1"))
MESSAGES = reached(DATAGRAM, _loopback(socket.AF_INET, "127.0.0.1"))
NETWORK = Attack(
    "network, services of this machine included",
    LOCAL,
    (
        Spelling("TCP", python=_connect("socket.create_connection(('127.0.0.1', @PORT@), 5)")),
        Spelling("TCP of a shell", "bash -c 'echo x > /dev/tcp/127.0.0.1/@PORT@'"),
        Spelling("TCP over IPv6", judge=LOCAL_6, python=_connect("socket.create_connection(('::1', @PORT@), 5)")),
        Spelling("a mapped address", python=_connect("socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', @PORT@))")),
        Spelling("MPTCP", python=_connect("socket.socket(2, 1, 262).connect(('127.0.0.1', @PORT@))")),
        Spelling("TCP with the first data", python=_connect("s = socket.socket(); s.sendto(b'x', 0x20000000, ('127.0.0.1', @PORT@))")),
        Spelling("UDP", judge=MESSAGES, python=_connect("socket.socket(type=2).sendto(b'x', ('127.0.0.1', @PORT@))")),
        Spelling("UDP of a shell", "bash -c 'echo x > /dev/udp/127.0.0.1/@PORT@'", judge=MESSAGES),
        Spelling("a question to a name server", judge=MESSAGES, python=_connect(
            "s = socket.socket(type=2); s.connect(('127.0.0.1', @PORT@)); s.send(b'\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\4evil\\0\\0\\1\\0\\1')")),
        Spelling("another name space", "nsenter -t 1 -n bash -c 'echo x > /dev/tcp/127.0.0.1/@PORT@'"
                 " || nsenter -t $PPID -n bash -c 'echo x > /dev/tcp/127.0.0.1/@PORT@'", expected=ONLY_ROOT),
    ),
)  # fmt: skip

HOLD = """
import socket, time
s = socket.socket(%s)
time.sleep(0.6)
"""


ALL_FAMILIES = """
import socket, time
held = []
for family in (3, 4, 5, 6, 9, 13, 15, 19, 21, 23, 26, *range(28, 46)):
    for kind in (1, 2, 3, 5):
        try:
            held.append(socket.socket(family, kind))
        except OSError:
            pass
time.sleep(0.6)
"""


def _family(name: str, arguments: str, family: str, expected: Expected = MappingProxyType({})) -> Spelling:
    return Spelling(name, python=HOLD % arguments, judge=_held(family), expected=expected)


def _held(*families: str) -> Judge:
    return held_open(socket_of(*families))


FAMILIES = Attack(
    "sockets of other families",
    _held("AF_VSOCK"),
    (
        _family("vsock", "40, 1", "AF_VSOCK"),
        _family("vsock datagrams", "40, 5", "AF_VSOCK"),
        Spelling("every other family", python=ALL_FAMILIES, judge=_held()),
        _family("packets", "17, 3", "PACKET", expected=ONLY_ROOT),
        _family("raw", "2, 3, 1", "RAW", expected=ONLY_ROOT),
    ),
)

TELL = """
import socket
s = socket.socket(16, %s, 2)
s.sendto(bytes([17, 0, 0, 0]) + bytes(12) + b"x", (@PORT@, 0))
"""
PAIRED = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
number = libc.socket(16, 3, 2)
address = struct.pack("=HHII", 16, 0, @PORT@, 0)
libc.sendto(number, bytes([17, 0, 0, 0]) + bytes(12) + b"x", 17, 0, address, len(address))
"""
NETLINK = Attack(
    "processes outside by netlink, by a step with network access",
    told_by_netlink,
    (
        Spelling("a message", python=TELL % "3", network=True),
        Spelling("a datagram", python=TELL % "2", network=True),
        Spelling("by the C library", python=PAIRED, network=True),
    ),
)

INJECT = """
import fcntl, os, termios
os.setsid() if os.getpid() != os.getsid(0) else None
fd = os.open("%s", os.O_RDWR | os.O_NONBLOCK)
try:
    fcntl.ioctl(fd, termios.TIOCSCTTY, 1)
except OSError:
    pass
for byte in b"id\\n":
    fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte]))
"""
FORK = "import os\nif os.fork():\n    os.wait(); raise SystemExit\n"
TERMINALS = Attack(
    "terminals of the user",
    typed,
    (
        Spelling("by name", "printf 'x\\033]0;pwn\\007' > @TTY@"),
        Spelling("by a link", "ln -s @TTY@ l; echo x > l"),
        Spelling("all of them", "for t in /dev/pts/*; do echo x > $t; done"),
        Spelling("by the root of a process", "echo x > /proc/self/root@TTY@; echo x > /proc/$PPID/root@TTY@"),
        Spelling("by a descriptor of another process", "echo x > /proc/@PID@/fd/0"),
        Spelling("as typed", python=FORK + INJECT % "@TTY@"),
    ),
)  # fmt: skip

SHARED = """
import ctypes
libc = ctypes.CDLL(None)
libc.%s
"""
IPC = Attack(
    "shared memory left on the host",
    ipc_left,
    (
        Spelling("shmget", python=SHARED % "shmget(@KEY@, 4096, 0o1666)"),
        Spelling("semget", python=SHARED % "semget(@KEY@, 1, 0o1666)"),
        Spelling("msgget", python=SHARED % "msgget(@KEY@, 0o1666)"),
        Spelling("ipcmk's way, by a child", python="import os\nif not os.fork():\n    pass\n" + SHARED % "shmget(@KEY@, 9999, 0o1600)"),
        Spelling("/dev/shm", "echo x > /dev/shm/attack-@ID@"),
    ),
)  # fmt: skip

KEY = """
import ctypes
ctypes.CDLL(None).syscall(248, b"user", b"attack-@ID@", b"x", 1, %s)
"""
JOIN = "import ctypes\nctypes.CDLL(None).syscall(250, 1, 0)\n"
KEYS = Attack(
    "key rings of the user",
    key_left,
    (
        Spelling("the user's", python=KEY % "-4"),
        Spelling("the session's of the user", python=KEY % "-5"),
        Spelling("after a session of its own", python=JOIN + KEY % "-4"),
        Spelling("linked from the process's", python=KEY % "-2" + (
            "libc = ctypes.CDLL(None)\nkey = libc.syscall(250, 10, -2, b'user', b'attack-@ID@', 0)\nlibc.syscall(250, 8, key, -4)\n")),
    ),
)  # fmt: skip

NAP = "sleep 300.@ID@"
TWICE = """
import os, sys
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 10)
os.execvp("sleep", "@NAP@".split())
""".replace("@NAP@", NAP)
BOMB = "f() { [ $1 -gt 7 ] && return; " + NAP + " & f $(($1+1)) & f $(($1+1)); }; f 0"
KILL_PARENT = f"setsid {NAP} > /dev/null 2>&1 & sleep 0.1; kill -9 $PPID; sleep 0.3"
KILL_ANCESTORS = """
import os, time
if not os.fork():
    os.setsid()
    os.closerange(0, 10)
    os.execvp("sleep", "@NAP@".split())
time.sleep(0.1)
above, process = [], os.getppid()
while process > 1 and b"worker_side" not in open(f"/proc/{process}/cmdline", "rb").read():
    above.append(process)
    process = int(open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[1])
for each in reversed(above):
    try:
        os.kill(each, %s)
    except OSError:
        pass
time.sleep(0.3)
""".replace("@NAP@", NAP)
LEFT_BEHIND = Attack(
    "processes left behind",
    left_running,
    (
        Spelling("in the background", f"{NAP} &", expected=NOWHERE, control=f"{NAP} >/dev/null 2>&1 &"),
        Spelling("nohup and a session", f"nohup setsid {NAP} > /dev/null 2>&1 &", expected=NOWHERE,
                 control=f"nohup setsid {NAP} > /dev/null 2>&1 &"),
        Spelling("a daemon", python=TWICE, expected=NOWHERE, control=f"(setsid {NAP} >/dev/null 2>&1 &)"),
        Spelling("deaf to signals", f"trap '' TERM HUP INT; (trap '' TERM; setsid {NAP}) &", expected=NOWHERE,
                 control=f"(trap '' TERM; setsid {NAP} >/dev/null 2>&1) &"),
        Spelling("a function that calls itself", BOMB, expected=NOWHERE, worker={"PLANS_LIMIT_PROCESSES": "100"},
                 control=f"for n in 1 2 3; do {NAP} >/dev/null 2>&1 & done"),
        Spelling("its parent ended first", KILL_PARENT),
        Spelling("all above it ended first", python=KILL_ANCESTORS % "9"),
    ),
)  # fmt: skip

CHANNEL_ATTACKS = (
    NAMED_SOCKETS,
    ABSTRACT_SOCKETS,
    ABSTRACT_WITH_NETWORK,
    NETWORK,
    FAMILIES,
    NETLINK,
    TERMINALS,
    IPC,
    KEYS,
    LEFT_BEHIND,
)

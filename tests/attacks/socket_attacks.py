"""Named Unix sockets in the workspace that are known to the kernel under another name, or under none."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.attacks.attack import NAMED, Attack, Judge, Spelling
from tests.attacks.channel_attacks import SEND
from tests.attacks.ground import Ground
from tests.attacks.process_judges import HEARD_SECONDS

Bind = Callable[[socket.socket, Ground], Path]


def _in_workspace(bind: Bind) -> Judge:
    """A judge that listens at a socket which has been brought into the workspace, and hears whether somebody came."""

    @contextmanager
    def judge(ground: Ground) -> Iterator[Callable[[], bool]]:
        with socket.socket(socket.AF_UNIX) as listener:
            place = bind(listener, ground)
            listener.listen()
            listener.settimeout(HEARD_SECONDS)
            place.chmod(0o777)
            ground.own(ground.workspace)
            ground.tokens["SOCKET"] = os.path.relpath(place, ground.workspace)

            def heard() -> bool:
                with suppress(TimeoutError):
                    listener.accept()[0].close()
                    return True
                return False

            yield heard

    return judge


def _relative(folder: str) -> Bind:
    def bind(listener: socket.socket, ground: Ground) -> Path:
        place = ground.make(ground.workspace / folder)
        before = Path.cwd()
        os.chdir(place)
        try:
            listener.bind("s")
        finally:
            os.chdir(before)
        return place / "s"

    return bind


def _by_link(listener: socket.socket, ground: Ground) -> Path:
    (ground.base / "l").symlink_to(ground.workspace)
    listener.bind(f"{ground.base}/l/s")
    return ground.workspace / "s"


def _moved(listener: socket.socket, ground: Ground) -> Path:
    listener.bind(f"{ground.home}/s")
    return (ground.home / "s").rename(ground.workspace / "s")


def _linked(listener: socket.socket, ground: Ground) -> Path:
    listener.bind(f"{ground.home}/s")
    (ground.workspace / "s").hardlink_to(ground.home / "s")
    return ground.workspace / "s"


def _two_lines(listener: socket.socket, ground: Ground) -> Path:
    listener.bind(f"{ground.workspace}/a\nb")
    return ground.workspace / "a\nb"


CONNECT = SEND % ("STREAM", 'r"""@SOCKET@"""')
WAYS: dict[str, Bind] = {
    "bound by a relative name": _relative("."),
    "bound by a relative name in a directory that is not scanned": _relative("node_modules/a"),
    "bound by a link to the workspace": _by_link,
    "moved into the workspace after it was bound": _moved,
    "a hard link to one outside": _linked,
    "a name of two lines": _two_lines,
}
SOCKET_ATTACKS = (
    Attack(
        "named Unix sockets under other names",
        _in_workspace(_relative(".")),
        tuple(Spelling(name, python=CONNECT, judge=_in_workspace(bind)) for name, bind in WAYS.items()),
        expected=NAMED,
    ),
)

"""Which links were used, and what was decided with them: one small file each, which survives restarts.

Two clicks in the same moment: a kernel lock on that file lets one of them decide. If the process dies before the plan
has answered, the lock is free and the file still empty: the link may be tried again, and the plan itself refuses a
second decision about a step.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from plansurvive.runtime.base.wait import try_lock
from plansurvive.runtime.links.token import Link, LinkRefused
from plansurvive.runtime.settings import SettingError

KEPT = timedelta(days=30)
"""How long it is remembered what was decided with a link, after it has expired."""
MAX_BYTES = 4_000


class UsedLinks:
    """The records of used links in a private directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def outcome(self, link: Link) -> str | None:
        """What was decided with the link, as a sentence; None if it has not been used."""
        try:
            text = self._path(link).read_bytes()[:MAX_BYTES]
        except FileNotFoundError:
            return None
        return text.decode(errors="replace") or None

    @contextmanager
    def use(self, link: Link, now: datetime) -> Iterator[Callable[[str], None]]:
        """Hold the link while its decision is sent; call the yielded function with the outcome once the plan has it.

        Without that call, the link stays unused. Raises LinkRefused LINK_USED with what was decided, or LINK_BUSY while
        another request holds it.
        """
        try:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            self._forget(now)
            descriptor = os.open(self._path(link), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise SettingError({"PLANS_STATE_DIR": f"{self._directory}: {error.strerror}"}) from error
        try:
            if not try_lock(descriptor):
                raise LinkRefused("the link is being used at this moment; look again", "LINK_BUSY")
            said = os.pread(descriptor, MAX_BYTES, 0).decode(errors="replace")
            if said:
                raise LinkRefused(f"the link has been used: {said}", "LINK_USED")
            yield lambda outcome: _write(descriptor, outcome)
        finally:
            os.close(descriptor)

    def _path(self, link: Link) -> Path:
        return self._directory / f"{link.expires}-{link.id}"

    def _forget(self, now: datetime) -> None:
        """Remove the records of links that expired long ago; one that is unused and expired is not needed either."""
        before = (now - KEPT).timestamp()
        for path in self._directory.iterdir():
            expires = path.name.partition("-")[0]
            if expires.isdigit() and int(expires) < before:
                path.unlink(missing_ok=True)


def _write(descriptor: int, outcome: str) -> None:
    os.pwrite(descriptor, outcome.encode(errors="replace")[:MAX_BYTES], 0)
    os.fsync(descriptor)

"""What people replied to requests, remembered in the state directory: one small file for each thing that was asked.

A request's key may not be used again once it was replied to, also by a server that was started later: the number of
replies is part of the key. Two replies at the same moment: a kernel lock on the file lets one of them decide.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from plansurvive.plans.model import Value
from plansurvive.runtime.base.wait import try_lock
from plansurvive.runtime.settings import SettingError, Settings

KEPT_SECONDS = 400 * 24 * 3600
"""How long a reply is remembered."""
MAX_REPLIES = 10
"""After so many replies that settled nothing, people are not asked here any more: they decide elsewhere."""
MAX_WHY = 500
MAX_BYTES = 4_000


class Replied(Value):
    """What came of the requests about one thing."""

    count: int = Field(default=0, ge=0, le=MAX_REPLIES, description="Replies so far.")
    state: Literal["open", "put off", "settled"] = Field(
        default="open", description="put off: the person would not decide here; settled: the plan has the decision."
    )
    why: str = Field(default="", max_length=MAX_WHY, description="Why the last reply was not accepted.")

    @property
    def is_open(self) -> bool:
        """Whether the person may be asked again without being bothered."""
        return self.state == "open" and self.count < MAX_REPLIES

    def refused(self, why: str) -> Replied:
        """After a reply that was not accepted."""
        return Replied(count=self.count + 1, why=why[:MAX_WHY])

    def put_off(self) -> Replied:
        """After the person has declined, or dismissed the form."""
        return Replied(count=self.count + 1, state="put off")

    def settled(self) -> Replied:
        """After the plan has the decision."""
        return Replied(count=self.count + 1, state="settled")


class Replies:
    """The replies of one state directory."""

    def __init__(self, settings: Settings, now: Callable[[], float] = time.time) -> None:
        self._settings, self._now = settings, now

    def of(self, plan: str, base: str) -> Replied:
        """What was replied about one thing so far."""
        try:
            return _read(self._path(plan, base).read_bytes())
        except FileNotFoundError:
            return Replied()

    @contextmanager
    def take(self, plan: str, base: str) -> Iterator[tuple[Replied, Callable[[Replied], None]] | None]:
        """Hold what was replied while a reply is sent; call the function with what came of it. None: another holds it.

        Raises SettingError if the state directory cannot be written.
        """
        path = self._path(plan, base)
        try:
            self._settings.make_state_dir()
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self._forget(path.parent)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise SettingError({"PLANS_STATE_DIR": f"{path.parent}: {error.strerror}"}) from error
        try:
            if not try_lock(descriptor):
                yield None
                return
            yield _read(os.pread(descriptor, MAX_BYTES, 0)), lambda replied: _write(descriptor, replied)
        finally:
            os.close(descriptor)

    def _path(self, plan: str, base: str) -> Path:
        name = hashlib.sha256(f"{plan}\0{base}".encode()).hexdigest()
        return self._settings.state_dir / "asked" / name

    def _forget(self, directory: Path) -> None:
        before = self._now() - KEPT_SECONDS
        for path in directory.iterdir():
            try:
                if path.stat().st_mtime < before:
                    path.unlink(missing_ok=True)
            except FileNotFoundError:  # another process was faster
                continue


def _read(data: bytes) -> Replied:
    if not data:
        return Replied()
    try:
        return Replied.model_validate_json(data)
    except ValidationError:  # cut short by a crash, or damaged: nobody is asked by a key that may have been used
        return Replied(count=MAX_REPLIES)


def _write(descriptor: int, replied: Replied) -> None:
    data = replied.model_dump_json().encode()
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)

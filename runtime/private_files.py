"""Who else may read or replace our files: directories are made private at start, or refused with the way out.

Only the directory itself is repaired: what lies in a directory of mode 0700 is out of reach. Nothing walks a tree. A
file that holds a secret must be private itself, as it may have been copied there.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path

from plansurvive.runtime.settings import SettingError

NOBODY = 65_534
"""The owner that a user namespace shows for files of users whom it does not know, such as those of the host's root."""


def make_private(directory: Path, setting: str) -> None:
    """Take the rights of others off a directory of ours: mode 0700. Raises SettingError if it cannot be private."""
    problem = trouble(directory)
    if problem:
        raise SettingError({setting: problem})
    if directory.stat().st_mode & 0o077:
        try:
            directory.chmod(0o700)
        except OSError as error:
            text = f"{directory} cannot be made private: {error.strerror}; choose one on another file system"
            raise SettingError({setting: text}) from error


def trouble(directory: Path) -> str | None:
    """Why a directory of ours is not safe from other users, and what to do; None if it is, or can be made so."""
    real = directory.resolve()
    owner = real.stat().st_uid
    if owner != os.geteuid():
        mine, other = _name(os.geteuid()), _name(owner)
        return f"{_both(directory, real)} belongs to {other}, not to {mine}; run as {other} or choose another directory"
    return replaceable(directory)


def replaceable(path: Path) -> str | None:
    """Who other than root and this user could put something else in this place; None if nobody could.

    Looks at the directories above, by name and where links lead, as nobody needs rights to what he can rename.
    """
    for parent in sorted({*path.absolute().parents, *path.resolve().parents}, key=lambda each: len(each.parts)):
        status = parent.stat()
        if status.st_uid not in (0, os.geteuid(), NOBODY):
            return f"{parent}, above {path}, belongs to {_name(status.st_uid)}, who could replace it; choose another"
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"{parent}, above {path}, may be changed by everybody; run `chmod o-w {parent}` or choose another"
    return None


def untrusted(program: Path) -> str | None:
    """Why a program is not to be run: somebody else could have put it there. None if nobody could."""
    status = program.resolve().stat()
    if status.st_uid not in (0, os.geteuid(), NOBODY):
        return f"{program} belongs to {_name(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH:
        return f"{program} may be changed by everybody; run `chmod o-w {program.resolve()}`"
    return replaceable(program)


def secret(path: Path, make: Callable[[], str], setting: str, proves: str) -> str:
    """The secret of 64 hexadecimal digits in a file of ours, made on first use with mode 0600.

    `proves`: what it would no longer prove if others knew it, for the message. Raises SettingError about `setting` if
    the file cannot be made or read, if others may read or change it, or if it holds anything else.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read_secret(path, setting, proves)
    except OSError as error:
        raise SettingError({setting: f"{path} cannot be written: {error.strerror}"}) from error
    with os.fdopen(descriptor, "w") as file:
        file.write(make())
    return _read_secret(path, setting, proves)


def _read_secret(path: Path, setting: str, proves: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise SettingError({setting: f"{path} cannot be read: {error.strerror}"}) from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            problem = (
                f"others may read or change {path} (mode {stat.S_IMODE(status.st_mode):04o}), so {proves} prove "
                "nothing; remove it, and a new key is made with mode 0600"
            )
            raise SettingError({setting: problem})
        text = file.read(1_000)
    for _ in range(100):  # another process has just created it and is still writing
        if len(text.strip()) == 64:
            break
        time.sleep(0.01)
        text = path.read_bytes()[:1_000]
    found = text.decode("ascii", errors="replace").strip()
    if not re.fullmatch(r"[0-9a-f]{64}", found):
        raise SettingError({setting: f"{path} holds no key; remove it, and a new one is made"})
    return found


def _both(path: Path, real: Path) -> str:
    return str(path) if path == real else f"{path}, which leads to {real},"


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def exposed(status: os.stat_result) -> str:
    """Why others could read or change a file with a secret; empty if they could not.

    A file of root may be readable by a group: so do containers mount secrets for a user of their own.
    """
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    shared = 0o037 if status.st_uid == 0 and os.geteuid() != 0 else 0o077
    if status.st_mode & shared:
        return f"can be read or changed by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""

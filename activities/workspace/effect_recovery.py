"""Crash recovery for the effect log: inspects the files to decide whether each open effect was applied.

New content is complete in a temporary file before its effect is logged, and the temporary file is removed only after
the effect. So whether the file exists, and its content, show whether the worker died before or after the effect. The
outcome is recorded before that evidence is removed, as a recovery may be killed as well: without its temporary file, a
write would be taken for made, and a deletion for not made. Call this with the file locked.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from plansurvive.activities.workspace.atomic_swap import exchange
from plansurvive.activities.workspace.contents import token
from plansurvive.activities.workspace.effect_log import Effect, EffectLog
from plansurvive.activities.workspace.workspace import DirectoryEntry


def settle(log: EffectLog, workspace: str, place: DirectoryEntry) -> None:
    """Mark every open effect on the file at `place` as done, or delete its row if it was not applied."""
    for effect in log.open_at(workspace, "/".join(place.real_parts)):
        if effect.kind == "directory":
            _record(log, effect, place.is_directory)
        elif place.missing:
            log.settle(effect, "doubt")  # its directory is gone, and the evidence with it
        else:
            happened = _deleted(effect, place) if effect.kind == "delete" else _written(effect, place)
            os.fsync(place.directory)
            _record(log, effect, happened)
            _remove(effect.temporary, place.directory)
    place.look_again()


def _record(log: EffectLog, effect: Effect, happened: bool) -> None:
    if happened:
        log.settle(effect, "done")
    else:
        log.forget(effect)


def _written(effect: Effect, place: DirectoryEntry) -> bool:
    """Whether a write was applied: its temporary file is gone, was swapped with the old one, or is a second link."""
    left = token(effect.temporary, place.directory)
    if not left:
        return True
    happened = False
    if left != effect.after:
        # The names were swapped. If the file that came out is not the one from before, another program saved it in
        # between: swap back.
        happened = left == effect.before
        if not happened and token(place.name, place.directory) == effect.after:
            exchange(effect.temporary, place.name, place.directory)
    elif not effect.before:
        happened = _same_file(effect.temporary, place.name, place.directory)
    return happened


def _deleted(effect: Effect, place: DirectoryEntry) -> bool:
    """Whether a deletion was applied. The file is renamed first, so the temporary file is the one to delete."""
    left = token(effect.temporary, place.directory)
    if not left:
        return False
    if left == effect.before or token(place.name, place.directory):
        return left == effect.before
    # Another program saved the file just before it was renamed: put it back.
    os.rename(effect.temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    return False


def _same_file(one: str, other: str, directory: int) -> bool:
    try:
        files = [os.stat(name, dir_fd=directory, follow_symlinks=False) for name in (one, other)]
    except FileNotFoundError:
        return False
    return stat.S_ISREG(files[0].st_mode) and os.path.samestat(*files)


def _remove(name: str, directory: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)

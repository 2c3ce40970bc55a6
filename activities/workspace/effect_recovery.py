"""What became of effects that a dead worker left open: found out from the files themselves, never guessed.

A new content lies complete in a temporary file before its effect is logged, and the temporary file goes only after the
effect; so its presence, and what it holds, tell on which side of the effect the worker died. Call this with the file
locked.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from activities.workspace.atomic_swap import exchange
from activities.workspace.contents import token
from activities.workspace.effect_log import Effect, EffectLog
from activities.workspace.workspace import Place


def settle(log: EffectLog, workspace: str, place: Place) -> None:
    """Complete, or forget, every open effect on the file at `place`."""
    for effect in log.open_at(workspace, "/".join(place.real_parts)):
        if effect.kind == "directory":
            _record(log, effect, place.is_directory)
        elif place.missing:
            log.settle(effect, "doubt")  # its directory is gone, and all that could tell with it
        else:
            happened = _deleted(effect, place) if effect.kind == "delete" else _written(effect, place)
            _record(log, effect, happened)
    place.look_again()


def _record(log: EffectLog, effect: Effect, happened: bool) -> None:
    if happened:
        log.settle(effect, "done")
    else:
        log.forget(effect)


def _written(effect: Effect, place: Place) -> bool:
    """Without its temporary file the new content has taken the name. With it, it holds the new content or the old."""
    found = token(effect.temporary, place.directory)
    if not found:
        return True
    happened = False
    if found != effect.after:
        # The names were swapped. What came out must be what was there before, else it was saved in between: back.
        happened = found == effect.before
        if not happened and token(place.name, place.directory) == effect.after:
            exchange(effect.temporary, place.name, place.directory)
    elif not effect.before:
        happened = _same_file(effect.temporary, place.name, place.directory)
    _remove(effect.temporary, place.directory)
    return happened


def _deleted(effect: Effect, place: Place) -> bool:
    """The file goes by way of a temporary name; what has that name was there."""
    found = token(effect.temporary, place.directory)
    if not found:
        return False
    if found == effect.before or token(place.name, place.directory):
        _remove(effect.temporary, place.directory)
        return found == effect.before
    os.rename(effect.temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    return False


def _same_file(one: str, other: str, directory: int) -> bool:
    try:
        found = [os.stat(name, dir_fd=directory, follow_symlinks=False) for name in (one, other)]
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found[0].st_mode) and os.path.samestat(*found)


def _remove(name: str, directory: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
    os.fsync(directory)

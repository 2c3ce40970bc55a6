"""The scratch directories of plans: what the commands of a plan have as /tmp, in the state directory of their worker.

Each run of a workflow has its own, which its steps share; a plan that is started again under the same id gets another.
It is removed when the workflow ends, and by `plan prune` where no worker saw the end. What removes it renames it first,
so that nothing new finds a half-removed one.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

FOLDER, OWNER, GONE = "tmp", "owner", ".gone-"
"""Name in the state directory; of the file with the workflow's id; what those begin with that are being removed."""


def scratch_of(state: Path, owner: str) -> Path:
    """The directory of a run of a workflow (`plan-x/1a2b3c4d`), made if need be. Raises OSError."""
    workflow_id, _, run = owner.partition("/")
    home = _home(state, workflow_id)
    place = home / (_name(run) if run else "run")
    if not place.is_dir():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        (home / OWNER).write_text(workflow_id, encoding="utf-8", errors="surrogateescape")
        place.mkdir(mode=0o700, exist_ok=True)
    return place


def discard(state: Path, workflow_id: str) -> None:
    """Remove what a workflow that has ended had, in the background: it may be large."""
    if (aside := _aside(_home(state, workflow_id))) is not None:
        threading.Thread(target=remove, args=(aside,), name="scratch", daemon=True).start()


def owned(state: Path) -> Iterator[tuple[Path, str]]:
    """All that there are, with the id of the workflow; empty: it is being removed, or is no plan's."""
    with suppress(OSError):
        for home in sorted((state / FOLDER).iterdir()):
            owner = ""
            if not home.name.startswith(GONE):
                with suppress(OSError):
                    owner = (home / OWNER).read_text(encoding="utf-8", errors="surrogateescape")
            yield home, owner


def clear(home: Path) -> bool:
    """Remove one of `owned`. Returns whether it was there, and is gone."""
    aside = home if home.name.startswith(GONE) else _aside(home)
    return aside is not None and remove(aside)


def remove(place: Path) -> bool:
    """Remove a directory whatever is in it: a command may have taken its own rights away. Follows no link."""
    closed = set[str]()

    def note(_call: Callable[..., Any], path: str, _error: object) -> None:
        closed.update((str(Path(path).parent), path))

    tried = set[str]()
    while True:  # each pass opens the outermost directories that are closed
        closed.clear()
        shutil.rmtree(place, onerror=note)
        if not os.path.lexists(place):
            return True
        if closed <= tried:
            return False
        tried |= closed
        for path in closed:
            with suppress(OSError):
                if stat.S_ISDIR(Path(path).lstat().st_mode):
                    Path(path).chmod(0o700)


def _aside(home: Path) -> Path | None:
    aside = home.with_name(f"{GONE}{secrets.token_hex(8)}")
    try:
        home.rename(aside)
    except OSError:
        return None
    return aside


def _home(state: Path, workflow_id: str) -> Path:
    return state / FOLDER / _name(workflow_id)


def _name(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:32]

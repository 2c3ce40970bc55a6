"""Values that a killed prune held: put back, unless somebody has written them again meanwhile."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from temporalio.api.common.v1 import Payload
from temporalio.converter import StorageDriverStoreContext

from plansurvive.runtime.held import aside_of, put_back
from plansurvive.runtime.storage import LocalDirectory

OLD = 3 * 86_400
_moments: list[tuple[Path, Callable[[], None]]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    """Python says what it is about to do: the moment between a look and what follows from it."""
    if event in ("os.rename", "os.link") and _moments and str(arguments[0]) == str(_moments[0][0]):
        _moments.pop()[1]()


sys.addaudithook(_hook)


@contextmanager
def just_before_it_moves(path: Path, act: Callable[[], None]) -> Iterator[None]:
    """Have something happen right before a file gets another name."""
    _moments.append((path, act))
    yield
    assert not _moments, "nothing moved it"


async def stored(tmp_path: Path) -> tuple[Path, bytes]:
    """A value that a killed prune held, three days old."""
    driver = LocalDirectory(tmp_path)
    await driver.store(StorageDriverStoreContext(), [Payload(data=b"wanted")])
    [path] = tmp_path.glob("??/*")
    content = path.read_bytes()
    path.rename(aside_of(path))
    os.utime(aside_of(path), (time.time() - OLD,) * 2)
    return path, content


async def test_a_held_value_is_put_back_as_old_as_it_was(tmp_path: Path) -> None:
    path, content = await stored(tmp_path)
    put_back(tmp_path)
    assert (path.read_bytes(), aside_of(path).exists()) == (content, False)
    assert path.stat().st_mtime < time.time() - OLD / 2
    assert path.stat().st_nlink == 1


async def test_a_value_that_is_written_again_at_that_moment_stays_young(tmp_path: Path) -> None:
    """As old as the held one, it would be removed before the history says that it is wanted."""
    path, content = await stored(tmp_path)

    def write() -> None:
        path.write_bytes(content)

    with just_before_it_moves(aside_of(path), write):
        put_back(tmp_path)
    assert (path.read_bytes(), aside_of(path).exists()) == (content, False)
    assert path.stat().st_mtime > time.time() - OLD / 2


async def test_a_prune_that_was_killed_between_the_two_names_leaves_one(tmp_path: Path) -> None:
    path, content = await stored(tmp_path)
    os.link(aside_of(path), path)
    put_back(tmp_path)
    assert (path.read_bytes(), aside_of(path).exists(), path.stat().st_nlink) == (content, False, 1)

"""Which directory is behind a path: what may change about it, and what makes it another one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plansurvive.activities.workspace.identity import check_path, identity_of
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.errors import ToolError

KNOWN = DirectoryIdentity(path="/w", inode=7, born="100.000000001", device=3, mounts="boot 1")


def is_refused(path: Path, known: DirectoryIdentity) -> bool:
    """Whether both doors refuse a directory: the check before a call, and the workspace when it is entered."""
    refusals = []
    doors: list[Callable[[], None]] = [
        lambda: check_path(str(path), known, "p"),
        lambda: enter_workspace(path, known),
    ]
    for enter in doors:
        try:
            enter()
        except ToolError as error:
            refusals.append(error.code)
    assert refusals in ([], ["WORKSPACE_MOVED"] * 2)
    return bool(refusals)


def enter_workspace(path: Path, known: DirectoryIdentity) -> None:
    with Workspace(str(path), directory=known, plan_id="p").directory("."):
        pass


def test_a_directory_stays_itself_whatever_happens_inside_and_to_its_rights(tmp_path: Path) -> None:
    place = tmp_path / "w"
    place.mkdir()
    known = identity_of(str(place))
    for command in (["git", "init", "-q"], ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q",
                    "--allow-empty", "-m", "x"], ["git", "checkout", "-q", "-b", "other"]):  # fmt: skip
        subprocess.run(command, cwd=place, check=True)
    place.chmod(0o700)
    assert not is_refused(place, known)
    place.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").rename(place)
    assert not is_refused(place, known)


@pytest.mark.parametrize("way", ["link", "rename", "new", "copy"])
def test_another_directory_under_the_same_path_is_refused(tmp_path: Path, way: str) -> None:
    place, other = tmp_path / "w", tmp_path / "other"
    for each in (place, other):
        each.mkdir()
    known = identity_of(str(place))
    place.rename(tmp_path / "away")
    if way == "link":
        place.symlink_to(other)
    elif way == "rename":
        other.rename(place)
    elif way == "new":
        place.mkdir()
    else:
        shutil.copytree(tmp_path / "away", place, copy_function=shutil.copy2)
    assert is_refused(place, known)
    with pytest.raises(ToolError, match=f"plan resume p --workspace {place}"):
        check_path(str(place), known, "p")


def test_a_bind_mount_is_the_directory_that_is_mounted(tmp_path: Path) -> None:
    place, view, other = tmp_path / "w", tmp_path / "view", tmp_path / "other"
    for each in (place, view, other):
        each.mkdir()
    known = identity_of(str(place))
    if subprocess.run(["mount", "--bind", place, view], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        assert not is_refused(view, known)
        subprocess.run(["mount", "--bind", other, place], check=True)
        try:
            assert is_refused(place, known)
        finally:
            subprocess.run(["umount", place], check=True)
        assert not is_refused(place, known)
    finally:
        subprocess.run(["umount", view], check=True)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"device": 4, "mounts": "boot 2"}, True),  # a container or a machine that started again
        ({"device": 4}, False),
        ({"mounts": "boot 2"}, True),
        ({"born": "100.000000002"}, False),
        ({"inode": 8}, False),
        ({"path": "/other"}, True),
    ],
)
def test_a_device_counts_only_while_mounts_are_the_same(change: dict[str, object], same: bool) -> None:
    assert KNOWN.is_same(KNOWN.model_copy(update=change)) is same

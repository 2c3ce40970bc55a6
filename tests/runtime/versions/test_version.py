"""A build is named by the code that a worker runs: equal code is an equal build, any change is another one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from plansurvive.runtime.base.code_place import CODE
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.versions.version import PACKAGES, Version, build_of_code


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A tree like ours, in small."""
    for name in PACKAGES:
        (tmp_path / "code" / name).mkdir(parents=True)
        (tmp_path / "code" / name / "first.py").write_text(f"# {name}\n")
    (tmp_path / "code" / "worker.py").write_text("# worker\n")
    return tmp_path / "code"


def test_equal_code_is_an_equal_build_wherever_it_is_and_whatever_its_dates(code: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(code, tmp_path / "other"))
    os.utime(other / "worker.py", (1, 1))
    assert build_of_code((), code) == build_of_code((), other)


@pytest.mark.parametrize("name", ["worker.py", *(f"{name}/first.py" for name in PACKAGES)])
def test_any_change_of_a_workers_code_is_another_build(code: Path, tmp_path: Path, name: str) -> None:
    other = Path(shutil.copytree(code, tmp_path / "other"))
    (other / name).write_text("# changed\n")
    assert build_of_code((), code) != build_of_code((), other)


def test_a_file_that_is_added_or_moved_is_another_build(code: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(code, tmp_path / "moved"))
    (moved / "plans" / "first.py").rename(moved / "plans" / "second.py")
    assert build_of_code((), code) != build_of_code((), moved)


def test_the_users_own_tools_are_part_of_a_build(code: Path, tmp_path: Path) -> None:
    tool, same = tmp_path / "a" / "tool.py", tmp_path / "b" / "tool.py"
    for file, text in ((tool, "one"), (same, "one")):
        file.parent.mkdir()
        file.write_text(text)
    build = build_of_code((str(tool),), code)
    assert build == build_of_code((str(same),), code) != build_of_code((), code)
    same.write_text("two")
    build_of_code.cache_clear()
    assert build_of_code((str(same),), code) != build


def test_a_version_names_its_build_or_has_it_computed() -> None:
    assert Version.of("team/2026.11").text == "team/2026.11"
    assert Version.of("team").build == build_of_code((), CODE)
    assert len(Version.of("team").build) == 12


@pytest.mark.parametrize("text", ["", "a b", "a.b/c", "a:b", "a/b/c", "a/", "/b", "-a", "a' OR 1", "a" * 101, "a/b\n"])
def test_a_version_that_the_server_could_misread_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="PLANS_DEPLOYMENT"):
        Settings.read({"PLANS_DEPLOYMENT": text, "HOME": "/tmp"})

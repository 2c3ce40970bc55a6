"""Which files in git's directories are guarded, also those that an attacker adds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plansurvive.activities.provenance.protected_files import MAX_TOLD, guarded, warning
from plansurvive.activities.provenance.scan import look
from plansurvive.activities.workspace.git_folders import MAX_FOLDERS, guarded_in_git


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("hooks", "modules/a/hooks", "modules/group/b/modules/c", "worktrees/w"):
        (tmp_path / ".git" / name).mkdir(parents=True)
    for name in ("a", "group/b", "group/b/modules/c"):
        (tmp_path / ".git/modules" / name / "HEAD").touch()
    (tmp_path / ".git/worktrees/w/HEAD").touch()
    return tmp_path


def found(folder: Path) -> list[str]:
    opened = os.open(folder, os.O_RDONLY)
    try:
        return guarded_in_git(opened)
    finally:
        os.close(opened)


def test_hooks_and_configurations_of_submodules_and_worktrees_are_guarded(folder: Path) -> None:
    wanted = {"hooks", "config", "config.worktree", "commondir", "info/attributes", "worktrees/w/gitdir"}
    wanted |= {
        f"modules/{name}/{file}" for name in ("a", "group/b", "group/b/modules/c") for file in ("hooks", "config")
    }
    assert wanted <= {*found(folder)}


def test_too_many_folders_are_guarded_as_a_whole(folder: Path) -> None:
    for number in range(MAX_FOLDERS + 1):
        (folder / ".git/modules" / f"more{number}").mkdir()
    assert "modules" in found(folder)
    assert "modules/a/hooks" not in found(folder)


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / ".git/modules/loop").symlink_to(folder / ".git")
    assert not [path for path in found(folder) if path.startswith("modules/loop")]


def test_git_is_guarded_in_a_workspace_too_large_to_be_scanned(folder: Path) -> None:
    for number in range(20):
        (folder / f"file{number}").touch()
    scan = look(str(folder), most=10)
    assert not scan.complete
    assert ".git/hooks" in scan.protected


def test_a_directory_made_to_look_like_a_cache_is_protected_like_any_other(folder: Path) -> None:
    (folder / "CACHEDIR.TAG").touch()
    (folder / "sub/.git/hooks").mkdir(parents=True)
    (folder / "sub/deeper").mkdir()
    (folder / "sub/deeper/.env").touch()
    (folder / "sub/CACHEDIR.TAG").touch()
    scan = look(str(folder))
    assert {"sub/.git/hooks", "sub/deeper/.env", ".git/hooks"} <= set(scan.protected)
    assert "sub/deeper/.env" not in scan.marks


def test_what_comes_after_the_most_files_is_protected_all_the_same(folder: Path) -> None:
    for number in range(20):
        (folder / f"file{number}").touch()
    (folder / "zz/.git/hooks").mkdir(parents=True)
    (folder / "zz/.env").touch()
    scan = look(str(folder), most=10)
    assert not scan.complete
    assert {"zz/.git/hooks", "zz/.env"} <= set(scan.protected)


def test_a_warning_names_what_git_runs_before_the_samples(folder: Path) -> None:
    before = look(str(folder))
    marks = guarded(str(folder), before.protected)
    for number in range(2_300):
        (folder / f".env.{number}").touch()
    for number in range(MAX_TOLD):
        (folder / ".git/hooks" / f"a{number}.sample").touch()
    (folder / ".git/hooks/pre-commit").touch()
    (folder / ".git/modules/a/config").touch()
    text = warning(marks, guarded(str(folder), look(str(folder)).protected))
    assert ".git/hooks/pre-commit" in text
    assert ".git/modules/a/config" in text
    assert ".sample" not in text


@pytest.mark.parametrize("is_link", [True, False])
def test_a_repository_that_is_kept_elsewhere_is_guarded_there(folder: Path, is_link: bool) -> None:
    """As `git init --separate-git-dir` makes it, with an absolute path, or a link."""
    (folder / "sub").mkdir()
    (folder / ".git").rename(folder / "kept")
    if is_link:
        (folder / "sub" / ".git").symlink_to("../kept")
    else:
        (folder / "sub" / ".git").write_text(f"gitdir: {folder / 'kept'}\n")
    protected = look(str(folder)).protected
    assert {"kept/hooks", "kept/config", "kept/modules/a/hooks", "sub/.git"} <= {*protected}


@pytest.mark.parametrize(
    "text", ["gitdir: /etc\n", "gitdir: ..\n", "gitdir: .\n", "no pointer", "gitdir: no/such", "\xff:"]
)
def test_a_pointer_that_leads_nowhere_in_the_workspace_guards_nothing_else(folder: Path, text: str) -> None:
    (folder / ".git").rename(folder / "kept")
    (folder / ".git").write_text(text)
    assert {*look(str(folder)).protected} <= {".git"}

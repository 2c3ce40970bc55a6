"""What git reads by the word of its own files is protected as these are, and so is a protected file's second name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from plansurvive.activities.provenance.scan import look
from plansurvive.activities.sandbox.bubblewrap import arguments
from plansurvive.activities.sandbox.root_view import root_view


def git(place: Path, *arguments: str) -> None:
    """Run git without any configuration of this machine."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    named = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *named, *arguments], cwd=place, check=True, env=environ, capture_output=True)


def protected(workspace: Path) -> set[str]:
    return set(look(str(workspace)).protected)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository in a directory of a workspace. Returns the directory."""
    path = tmp_path / "w" / "a"
    path.mkdir(parents=True)
    git(path, "init", "-q")
    git(path, "commit", "-q", "--allow-empty", "-m", "x")
    return path


@pytest.mark.parametrize("absolute", [False, True])
def test_the_folder_of_hooks_that_a_configuration_names(tree: Path, absolute: bool) -> None:
    assert "a/tools/hooks" not in protected(tree.parent)
    git(tree, "config", "core.hooksPath", str(tree / "tools/hooks") if absolute else "tools/hooks")
    assert "a/tools/hooks" in protected(tree.parent)


def test_configurations_that_are_included_by_others_too(tree: Path) -> None:
    git(tree, "config", "include.path", "../one")
    (tree / "one").write_text('[includeIf "gitdir:*"]\n\tpath = two\n[core] hooksPath = h\n')
    (tree / "two").write_text("[include]\n\tpath = /etc/gitconfig\n\tpath = three\n\tpath = one\n")
    found = protected(tree.parent)
    assert {"a/one", "a/two", "a/three", "a/h"} <= found
    assert not [each for each in found if "etc" in each or each.startswith("..")]


def test_the_common_directory_of_a_worktree_and_of_what_commondir_names(tree: Path) -> None:
    git(tree, "worktree", "add", "-q", "../wt")
    (tree.parent / "node_modules").mkdir()  # which is not searched: only the word of `commondir` leads there
    (tree / ".git").rename(tree.parent / "node_modules" / "meta")
    (tree.parent / "wt" / ".git").write_text("gitdir: ../node_modules/meta/worktrees/wt\n")
    assert {"node_modules/meta/hooks", "node_modules/meta/config"} <= protected(tree.parent)


def test_a_bare_repository_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    git(tmp_path / "store", "init", "-q", "--bare")
    assert {"store/hooks", "store/config"} <= protected(tmp_path)


def test_a_second_name_of_a_protected_file_is_read_only_as_well(tree: Path) -> None:
    workspace = str(tree.parent)
    (tree / "node_modules").mkdir()
    hook = tree / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")

    def read_only() -> set[str]:
        kept = [f"{workspace}/{each}" for each in protected(tree.parent)]
        words = [*arguments(root_view(workspace, None, ()), workspace, "/tmp", workspace, kept, network=False)]
        return {place for word, _, place in zip(words, words[1:], words[2:], strict=False) if word == "--ro-bind"}

    (tree / "harmless").write_text("x")
    os.link(tree / "harmless", tree / "twin")
    assert not read_only() & {f"{workspace}/a/harmless", f"{workspace}/a/twin"}
    os.link(hook, tree / "backup-hook")
    os.link(tree / ".git" / "config", tree / "node_modules" / "c")
    assert {f"{workspace}/a/backup-hook", f"{workspace}/a/node_modules/c"} <= read_only()

"""What git reads by the word of its own files is protected as these are, and so is a protected file's second name."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.provenance.protected_files import guarded, out_of_sight, warning
from plansurvive.activities.provenance.scan import look
from plansurvive.activities.provenance.watcher import Watcher
from plansurvive.activities.sandbox.bubblewrap import arguments
from plansurvive.activities.sandbox.probe import is_traced
from plansurvive.activities.sandbox.root_view import root_view
from plansurvive.activities.sandbox.sandbox import choose
from plansurvive.plans.files.name_patterns import DEFAULT
from tests.activities.attempts import Attempts


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


async def test_a_file_tool_asks_before_it_writes_what_git_reads_by_its_own_word(tree: Path, attempts: Attempts) -> None:
    tree.rename(attempts.workspace / "a")
    tree = attempts.workspace / "a"
    (attempts.workspace / "store").mkdir()
    git(attempts.workspace / "store", "init", "-q", "--bare")
    git(tree, "worktree", "add", "-q", "../wt")
    (tree / ".git").rename(attempts.workspace / "meta")
    (tree / ".git").write_text("gitdir: ../meta\n")
    (attempts.workspace / "wt" / ".git").write_text("gitdir: ../meta/worktrees/wt\n")
    asking = attempts.but(approved=False)
    places = ("a/tools/hooks/pre-commit", "a/own.conf")
    for path in (*places, "a/tools/build.sh", "wt/tools.txt", "store/readme", "notes.txt"):  # control
        await asking.run("write_file", path=path, content="x")
        (attempts.workspace / path).unlink()
    git(tree, "config", "core.hooksPath", "tools/hooks")
    git(tree, "config", "include.path", "../a/own.conf")
    for path in (*places, "meta/hooks/pre-commit", "meta/config", "store/hooks/post-update", "store/config"):
        error = await asking.error("write_file", path=path, content="x")
        assert error.type == "APPROVAL_REQUIRED", path
        assert "PATH_PROTECTED" in str(error), path
    await attempts.run("write_file", path=places[0], content="x")  # with an approval


@pytest.mark.parametrize("place", ["rebase-merge/git-rebase-todo", "sequencer/todo"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_command_that_changes_what_git_will_continue_with_is_warned_of(tree: Path, place: str, exists: bool) -> None:
    file, root = tree / ".git" / place, str(tree.parent)
    file.parent.mkdir()
    if exists:
        file.write_text("pick 1234 x\n")
    before = guarded(root, look(root).protected)
    assert warning(before, guarded(root, look(root).protected)) == ""  # control
    file.write_text("exec evil\n")
    assert f"a/.git/{place}" in warning(before, guarded(root, look(root).protected))


def test_protected_files_in_folders_that_are_not_searched_are_warned_of_by_the_trace() -> None:
    told = ("node_modules/q/.vscode/tasks.json", ".venv/.claude/settings.json", "node_modules/p/.git/hooks/pre-commit",
            "x/node_modules/p/.git/config")  # fmt: skip
    for path in told:
        assert path in out_of_sight(DEFAULT, [path, "node_modules/a.js"])
    others = ("node_modules/p/package.json", "node_modules/p/.git/objects/1/2", ".git/hooks/x", ".vscode/tasks.json",
              ".venv/lib/x.py")  # fmt: skip
    assert out_of_sight(DEFAULT, others) == ""


async def test_a_command_that_makes_one_there_is_warned_of(attempts: Attempts, state_dir: Path) -> None:
    sandbox = choose("auto", state=state_dir)
    if not is_traced(sandbox):
        pytest.skip("processes cannot be traced here")
    traced = attempts.but(site=ToolEnvironment(sandbox, Watcher(state_dir)))
    command = "mkdir -p node_modules/q{}; echo x > node_modules/q/{}"
    done = await traced.run("run_command", command=command.format("", "a.js"))
    assert not [each for each in done.warnings if "protected" in each]  # control
    done = await traced.run("run_command", command=command.format("/.vscode", ".vscode/tasks.json"))
    [told] = [each for each in done.warnings if "protected" in each]
    assert "node_modules/q/.vscode/tasks.json" in told
    assert "a.js" not in told

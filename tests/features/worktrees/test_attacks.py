"""What steps, and repositories, leave for git to run or follow: nothing happens outside the worktree.

Each attack would have its effect with plain git in the same place: the control of each is that it does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from plansurvive.features.worktrees.merge_tool import merge_tool
from tests.features.worktrees.repositories import Site, git

Attack = Callable[[Site, str], None]


def proof_of(site: Site) -> Path:
    """A file outside that an attack makes."""
    return site.root.parent / "proof"


def hook(site: Site, name: str, command: str) -> None:
    """Every hook of the repository, and of a directory that the configuration names."""
    for folder in (site.workspace / ".git" / "hooks", site.workspace / ".git" / "evil"):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / name).chmod(0o755)


def all_hooks(site: Site, command: str) -> None:
    for name in (
        *("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-checkout", "post-merge"),
        *("reference-transaction", "post-index-change", "post-rewrite", "pre-auto-gc", "fsmonitor-watchman"),
    ):
        hook(site, name, command)


def configured(**settings: str) -> Attack:
    def attack(site: Site, command: str) -> None:
        for name, value in settings.items():
            git(site.workspace, "config", name.replace("__", "."), value.replace("COMMAND", command))

    return attack


def filtered(site: Site, command: str) -> None:
    """A filter, and attributes that are not in a commit."""
    configured(filter__x__clean="COMMAND; cat", filter__x__smudge="COMMAND; cat")(site, command)
    configured(diff__x__command="COMMAND", diff__x__textconv="COMMAND; cat", merge__x__driver="COMMAND")(site, command)


def included(site: Site, command: str) -> None:
    (site.workspace / ".git" / "more").write_text(f'[core]\n\tfsmonitor = "{command}; false"\n\thooksPath = evil\n')
    git(site.workspace, "config", "include.path", "more")


def hooks_elsewhere(site: Site, command: str) -> None:
    all_hooks(site, command)
    git(site.workspace, "config", "core.hooksPath", ".git/evil")


REPOSITORIES: Mapping[str, Attack] = {
    "hooks": all_hooks,
    "hooksPath": hooks_elsewhere,
    "fsmonitor": configured(core__fsmonitor="COMMAND; false"),
    "filters": filtered,
    "include": included,
    "programs": configured(
        gpg__program="COMMAND", commit__gpgSign="true", core__pager="COMMAND", core__editor="COMMAND",
        core__sshCommand="COMMAND", core__askPass="COMMAND", credential__helper="!COMMAND", diff__external="COMMAND",
        sequence__editor="COMMAND", core__alternateRefsCommand="COMMAND", interactive__diffFilter="COMMAND",
    ),
    "promisor": configured(
        remote__origin__url="ext::COMMAND", remote__origin__promisor="true", protocol__ext__allow="always",
        extensions__partialClone="origin", core__repositoryFormatVersion="1",
    ),
    "worktree": configured(core__worktree="/"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPOSITORIES)
async def test_nothing_that_a_repository_names_is_run(name: str, site: Site) -> None:
    proof = proof_of(site)
    REPOSITORIES[name](site, f"touch {proof}")
    await site.run("fix", "write_file", path=".gitattributes", content="* diff=x merge=x\n*.txt filter=x\n")
    await site.run("fix", "write_file", path="a.txt", content="three\n")
    await site.run("fix", "run_command", command="echo four > a.txt; echo b > b.txt")
    await site.merge(merge_tool(site.root), steps=["fix"])
    assert (site.workspace / "a.txt").read_text() == "four\n"
    assert not proof.exists()


def test_plain_git_would_have_run_a_hook_and_a_monitor(site: Site) -> None:
    proof = proof_of(site)
    all_hooks(site, f"touch {proof}")
    git(site.workspace, "commit", "-q", "--allow-empty", "-m", "x")
    assert proof.exists()
    proof.unlink()
    configured(core__fsmonitor="COMMAND; false")(site, f"touch {proof}")
    git(site.workspace, "status")
    assert proof.exists()


STEPS: Mapping[str, str] = {
    "another git directory": "rm -f .git; git init -q; {evil}",
    "a pointer to one inside": "git init -q evil; cd evil; {evil}; cd ..; rm -f .git; echo 'gitdir: evil/.git' > .git",
    "a repository inside": "git init -q sub; cd sub; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x;"
    " {evil}",
    "an empty repository inside": "git init -q sub; cd sub; {evil}",
    "links": "ln -s / root; ln -s {outside} out; ln -sf {outside}/a.txt a.txt",
    "attributes": "git config -f .gitconfig filter.x.clean '{proof}'; echo '* filter=x ident' > .gitattributes",
    "a module": 'git config -f .gitmodules submodule.x.path x; git config -f .gitmodules submodule.x.update "!{proof}"',
}
"""What a step leaves in its worktree. The commands of a worker without a sandbox may do all of it."""
EVIL = "git config core.fsmonitor '{proof}; false'; git config core.hooksPath hooks; mkdir -p hooks"


@pytest.mark.parametrize("name", STEPS)
async def test_nothing_that_a_step_leaves_is_run_or_followed(name: str, site: Site) -> None:
    outside = site.root.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("mine\n")
    proof = f"touch {proof_of(site)}"
    command = STEPS[name].format(evil=EVIL.format(proof=proof), proof=proof, outside=outside)
    try:
        await site.run("fix", "run_command", command=f"({command}) || true; echo done > b.txt")
        await site.run("fix", "write_file", path="c.txt", content="x", step="more")
        await site.merge(merge_tool(site.root), steps=["fix"])
    except ApplicationError as error:
        assert error.type in ("WORKTREE_NESTED", "WORKTREE_FAILED"), error.message  # noqa: PT017
        assert "inside" in name
    assert not proof_of(site).exists()
    assert (outside / "a.txt").read_text() == "mine\n"
    assert os.listdir(outside) == ["a.txt"]  # noqa: PTH208
    assert "fsmonitor" not in git(site.workspace, "config", "--list")


async def test_another_directory_in_place_of_the_worktree_is_refused(site: Site) -> None:
    await site.run("fix", "write_file", path="c.txt", content="x")
    files, outside = site.files("fix"), site.root.parent / "outside"
    outside.mkdir()
    files.rename(files.with_name("moved"))
    for is_link in (True, False):
        if is_link:
            files.symlink_to(outside)
        else:
            files.unlink()
            files.mkdir()
        with pytest.raises(ApplicationError) as caught:
            await site.run("fix", "write_file", path="d.txt", content="x")
        assert caught.value.type == "WORKTREE_MOVED"
    assert os.listdir(outside) == []  # noqa: PTH208


async def test_a_directory_of_worktrees_that_is_a_link_is_refused(site: Site) -> None:
    (site.root.parent / "outside").mkdir()
    site.root.symlink_to(site.root.parent / "outside")
    with pytest.raises(ApplicationError) as caught:
        await site.run("fix", "write_file", path="c.txt", content="x")
    assert caught.value.type == "WORKTREE_REFUSED"


@pytest.mark.parametrize("place", ["objects", "refs/heads", "refs/heads/plans", "logs/refs/heads/plans"])
async def test_a_link_inside_the_git_directory_takes_nothing_outside(place: str, site: Site) -> None:
    outside, inside = site.root.parent / "outside", site.workspace / ".git" / place
    if inside.exists():
        inside.rename(outside)
    else:
        outside.mkdir()
    inside.parent.mkdir(parents=True, exist_ok=True)
    inside.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    with pytest.raises(ApplicationError) as caught:
        await site.run("fix", "write_file", path="c.txt", content="x")
    assert caught.value.type == "WORKTREE_REFUSED"
    assert sorted(outside.rglob("*")) == before


@pytest.mark.parametrize(
    "name", ["--upload-pack=x", "a/../../../x", "x.lock", "@{-1}", "a\nb", "main", "-", "refs/heads/main"]
)
async def test_names_of_plans_and_steps_lead_to_no_other_branch(name: str, site: Site) -> None:
    before = git(site.workspace, "rev-parse", "main")
    await site.run(name, "write_file", path="c.txt", content="x", plan=name, title=f"{name}\n\nPlan: other")
    assert git(site.workspace, "rev-parse", "main") == before
    added = [
        each for each in git(site.workspace, "for-each-ref", "--format=%(refname)").split("\n") if each[-4:] != "main"
    ]
    assert all(each.startswith("refs/heads/plans/") and each.count("/") == 4 for each in added)
    assert "error" not in git(site.workspace, "fsck", "--strict")

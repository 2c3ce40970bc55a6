"""A coding agent in a worktree asks git about it, and changes no git directory: by itself, and by a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.features.coding_agents.scene import Scene, code
from tests.features.worktrees.repositories import git, made
from tests.kit.driving import Plans, step
from tests.kit.lacking import require_sandbox

pytestmark = pytest.mark.uses("agents", "children", "worktrees")
LOOKS = "echo more >> a.txt; echo x > new.txt; git status --porcelain; git diff --stat; git log --format=%s"
CHANGES = {
    "commit": "git -c user.name=x -c user.email=x@example.org commit -qam mine",
    "stage": "git add new.txt",
    "configure": "git config core.pager 'touch pwned'",
    "hook": 'mkdir -p "$(git rev-parse --git-dir)/hooks" && echo x > "$(git rev-parse --git-dir)/hooks/post-commit"',
    "branch": "git branch theirs",
}
"""What writes into the git directory of the worktree, and fails."""
TRIES = "; ".join(f"({change}) >/dev/null 2>&1 && echo '{name} was possible'" for name, change in CHANGES.items())
WRITES = 'echo x > "$REPOSITORY/.git/description"; git -C "$REPOSITORY" branch theirs'
"""What changes the repository itself; where the sandbox shows none of it, that goes nowhere."""


def state_of(repository: Path) -> dict[str, bytes]:
    """The content of a git directory, but for objects and what our own branches are."""
    return {
        str(path.relative_to(repository)): path.read_bytes()
        for path in sorted(repository.rglob("*"))
        if path.is_file() and "objects" not in path.parts and "plans" not in path.parts
    }


@pytest.mark.parametrize("way", ["shell", pytest.param("run", marks=[pytest.mark.slow, pytest.mark.sampled])])
@pytest.mark.parametrize("level", ["bwrap", pytest.param("landlock", marks=[pytest.mark.slow, pytest.mark.sampled])])
async def test_git_tells_it_of_its_worktree_and_takes_no_change(
    level: str, way: str, idle: Plans, scene: Scene, tmp_path: Path
) -> None:
    require_sandbox(level)
    made(idle.workspace, a="one\n")
    repository = idle.workspace / ".git"
    before = state_of(repository)
    scene.script([{way: LOOKS}, {way: f"REPOSITORY='{idle.workspace}'; {TRIES}; {WRITES}; echo tried"}])
    async with scene.worker(sandbox=level, worktrees=tmp_path / "trees"):
        view = await (await idle.start([code() | {"worktree": True}], {"approveAll": True})).ended()
    assert view["status"] == "completed", view["log"]
    said = step(view, "code")["result"]["value"]["text"]
    for told in (" M a.txt\n?? new.txt\n", "1 file changed, 1 insertion(+)", "\nfirst\n"):
        assert told in said
    assert "tried" in said
    assert "was possible" not in said
    assert state_of(repository) == before
    (branch,) = git(idle.workspace, "branch", "--list", "plans/*", "--format=%(refname)").split()
    assert git(idle.workspace, "show", f"{branch}:a.txt").split() == ["one", "more"]


@pytest.mark.slow
@pytest.mark.in_turn
async def test_without_a_sandbox_git_takes_its_changes(idle: Plans, scene: Scene, tmp_path: Path) -> None:
    made(idle.workspace, a="one\n")
    said = tmp_path / "said.txt"
    tries = f"{LOOKS}; REPOSITORY='{idle.workspace}'; ({TRIES}) > {said}; {WRITES}"
    scene.script([{"shell": tries}], toml='approve = "never"\nsandbox = "off"')
    async with scene.worker(sandbox="off", worktrees=tmp_path / "trees"):
        await (await idle.start([code() | {"worktree": True}])).ended()
    assert said.read_text().splitlines() == [f"{name} was possible" for name in CHANGES]
    assert (idle.workspace / ".git/description").read_text() == "x\n"
    assert "theirs" in git(idle.workspace, "branch", "--list")

"""Real repositories, and steps that work in worktrees of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plansurvive.activities.tools.tool import Tool
from plansurvive.features.worktrees.in_worker import InTree
from plansurvive.features.worktrees.model import Choice, WorktreeOrder
from plansurvive.features.worktrees.trees import Trees
from plansurvive.plans.activity_io import Return
from plansurvive.plans.files.name_patterns import DEFAULT
from tests.activities.attempts import Attempts


def git(folder: Path, *arguments: str) -> str:
    """What a command of git writes there, with nothing but its own configuration."""
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", *arguments]
    done = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout.rstrip("\n")


def made(folder: Path, **files: str) -> Path:
    """A repository with these files NAME.txt committed on `main`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


@dataclass
class Site:
    """A worker with worktrees, and a repository as the workspace."""

    attempts: Attempts
    root: Path
    """PLANS_WORKTREES."""

    @property
    def workspace(self) -> Path:
        """The repository."""
        return self.attempts.workspace

    @property
    def trees(self) -> Trees:
        """What there is."""
        return Trees(self.root)

    async def run(
        self, tree: str, tool: str | Tool, /, *, step: str = "", title: str = "", plan: str = "p", **args: Any
    ) -> Return:
        """What a call gave back that was made in the worktree of a step."""
        here = self._here()
        order = WorktreeOrder(plan=plan, tree=tree, step=step or tree, title=title or f"Do {step or tree}")
        call = here.call(args)
        return await here.run(tool, call.model_copy(update={"parts": {"worktrees": order.model_dump(by_alias=True)}}))

    async def merge(
        self, tool: Tool, /, *, chosen: Sequence[Choice] = (), plan: str = "p", step: str = "s", **args: Any
    ) -> Return:
        """What a call gave back that was made in the workspace. `chosen`: what people chose about conflicts before."""
        here, order = self._here(), WorktreeOrder(plan=plan, chosen=list(chosen))
        parts = {"worktrees": order.model_dump(by_alias=True)}
        return await here.run(tool, here.call(args).model_copy(update={"step_id": step, "parts": parts}))

    def _here(self) -> Attempts:
        layer = InTree(self.trees, DEFAULT, frozenset())
        return self.attempts.but(site=replace(self.attempts.site, layers=(layer,)))

    def files(self, tree: str, plan: str = "p") -> Path:
        """The files of a worktree."""
        return next(
            Path(each.path) for each in self.trees.all() if (each.record.plan, each.record.tree) == (plan, tree)
        )

    def log(self, branch: str, form: str = "%s") -> list[str]:
        """The commits of a branch, newest first, in this format."""
        return git(self.workspace, "log", f"--format={form}", branch).split("\n")

    def show(self, branch: str, path: str) -> str:
        """A file as a branch has it."""
        return git(self.workspace, "show", f"{branch}:{path}")

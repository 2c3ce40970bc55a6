"""`plan worktrees` and `plan diff`: what is on this machine. No server is asked, and nothing is changed."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from plansurvive.client.cli.terminal import environment, output
from plansurvive.client.cli.terminal.options import AsJson, Id, Step, complete_plan
from plansurvive.client.ids import plan_id
from plansurvive.features.worktrees.git import Git
from plansurvive.features.worktrees.repository import Repository
from plansurvive.features.worktrees.settings import folder_of
from plansurvive.features.worktrees.trees import Tree, Trees, short
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line, safe


def worktrees(
    plan: Annotated[
        str | None, typer.Argument(metavar="ID", help="Only those of this plan.", autocompletion=complete_plan)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the worktrees of plans, with their branches."""
    trees = Trees(folder_of(environment.settings()))
    wanted = plan_id(plan) if plan else None
    found = [tree for tree in trees.all() if wanted in (None, tree.record.plan)]
    if as_json:
        output.show_json([_row(tree) for tree in found])
        return
    if not found:
        output.show(f"no worktrees{f' of plan {line(wanted)}' if wanted else ''} here (docs/worktrees.md)")
    for tree in found:
        record = tree.record
        output.show(f"{line(record.plan)}  {line(record.tree)}: {_state(tree)}")
        output.show(f"  branch {short(record.branch)}, from {short(record.into)} at {record.base[:12]}")
        output.show(f"  files  {line(tree.path)}")


def diff(plan: Id, step: Step, as_json: AsJson = False) -> None:
    """Show what a step has changed in its worktree. A patch against the commit that it began from."""
    trees = Trees(folder_of(environment.settings()))
    found = list(trees.of_step(plan_id(plan), step))
    if not found:
        text = (
            f"step '{line(step)}' of plan {line(plan_id(plan))} has no worktree on this machine: a step with "
            f"`worktree: true` has one once it has started; `plan worktrees {line(plan_id(plan))}` lists them"
        )
        raise PlanError(text, "WORKTREE_MISSING")
    patches = [(tree, patch_of(tree)) for tree in found]
    if as_json:
        output.show_json([{**_row(tree), "diff": patch} for tree, patch in patches])
        return
    for tree, patch in patches:
        if len(patches) > 1:
            output.show(f"# {line(tree.record.tree)}")
        sys.stdout.write("".join(f"{safe(row)}\n" for row in patch.split("\n")[:-1]))
        if not patch:
            output.say(f"'{line(tree.record.tree)}' has changed nothing yet")


def patch_of(tree: Tree) -> str:
    """What the commits of a worktree change, as a patch."""
    repository, record = Repository.of(tree.record.workspace), tree.record
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all")
    git = Git(tree.git_directory, repository.objects)
    return git.run("diff-tree", "-p", "-r", *options, record.base, record.tip).decode("utf-8", "replace")


def _row(tree: Tree) -> dict[str, Any]:
    record = tree.record
    return {
        "planId": record.plan, "stepId": record.tree, "branch": short(record.branch), "base": record.base,
        "commit": record.tip, "into": short(record.into), "workspace": record.workspace, "path": tree.path,
    }  # fmt: skip


def _state(tree: Tree) -> str:
    record = tree.record
    if record.tip == record.base:
        return "nothing committed"
    number = Git(tree.git_directory).text("rev-list", "--count", f"{record.base}..{record.tip}")
    return f"{number} commit{'s' * (number != '1')}"

"""Steps that work in a worktree of their own, on a branch of their own: docs/worktrees.md."""

REACHES_OUT = True
COMMANDS = {
    "worktrees": ("commands:worktrees", "List the worktrees of plans, with their branches."),
    "diff": ("commands:diff", "Show what a step has changed in its worktree."),
}
LISTED = {"worktrees": ("Look", "audit"), "diff": ("Look", "worktrees")}

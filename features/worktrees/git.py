"""Runs git for worktrees: with a configuration of our own, and without hooks, filters, helpers, prompts or network.

A command is given its git directory by name, and so looks for none: neither in the worktree, which a step may write,
nor above it. Git directories of ours (`trees`) have a configuration that we wrote, which names no program; with that of
a person's repository only references are read and written. What git would run by the word of a configuration all the
same is switched off here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field

from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.safe_text import line

REFUSED = "WORKTREE_REFUSED"
"""Code of what cannot be done with this repository, or not in this state; nothing was changed."""
SECONDS = 600.0
"""Most that one command of git may take."""
HELD: ContextVar[tuple[int, ...]] = ContextVar("HELD", default=())
"""The lock under which commands run. They inherit it: where a worker is killed, the next waits for its git to end."""
_OFF = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.excludesFile": "/dev/null",
    "core.commitGraph": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "credential.helper": "",
    "protocol.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "submodule.recurse": "false",
    "diff.ignoreSubmodules": "all",
    "diff.external": "",
    "commit.gpgSign": "false",
    "advice.detachedHead": "false",
    "core.quotePath": "false",
    "merge.conflictStyle": "zdiff3",
    "core.protectNTFS": "true",
    "core.protectHFS": "true",
}
_SURROUNDINGS = {
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ASKPASS": "false",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_FLUSH": "0",
}


class GitFailed(ToolError):
    """Git has ended with another exit code than 0."""

    def __init__(self, what: str, exit_code: int, said: str, output: bytes = b"") -> None:
        self.exit_code, self.said, self.output = exit_code, said, output
        text = f"git {what} failed (exit code {exit_code}): {said or 'it said nothing'}"
        # Another git of the person's is at work, or was killed and has left its lock, of which git says what to do.
        super().__init__("WORKTREE_FAILED", text, retryable=".lock': File exists" in said)


@dataclass(frozen=True)
class Git:
    """How commands of git run that are given this directory."""

    directory: str
    """The git directory."""
    objects: str = ""
    """Where objects are written and looked for first; empty: in the git directory."""
    tree: str = ""
    """The files; empty: the command needs none."""
    index: str = ""
    """Another index than that of the git directory."""
    person: Mapping[str, str] = field(default_factory=dict)
    """GIT_AUTHOR_NAME and the like, for commits."""

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """What the command writes. Raises GitFailed, or ToolError WORKTREE_REFUSED where git is not installed."""
        program = shutil.which("git")
        if program is None:
            raise ToolError(REFUSED, "git is not installed where this worker runs; install it (version 2.38 or later)")
        options = [part for name, value in _OFF.items() for part in ("-c", f"{name}={value}")]
        try:
            done = subprocess.run(
                [program, "--no-pager", *options, *arguments],
                input=given, capture_output=True, env=self._environment(), cwd=self.tree or self.directory,
                timeout=SECONDS, check=False, pass_fds=HELD.get(),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise GitFailed(arguments[0], -1, f"it took longer than {SECONDS:g} seconds") from None
        except OSError as error:
            raise GitFailed(arguments[0], -1, str(error)) from None
        if done.returncode:
            raise GitFailed(
                arguments[0], done.returncode, line(done.stderr.decode(errors="replace"))[:500], done.stdout
            )
        return done.stdout

    def text(self, *arguments: str, given: bytes = b"") -> str:
        """What the command writes, without the end of the line."""
        return os.fsdecode(self.run(*arguments, given=given)).rstrip("\n")

    def succeeds(self, *arguments: str) -> bool:
        """Whether the command ends with exit code 0; with 1 it does not. Raises GitFailed for another one."""
        try:
            self.run(*arguments)
        except GitFailed as failure:
            if failure.exit_code == 1:
                return False
            raise
        return True

    def _environment(self) -> dict[str, str]:
        places = {
            "GIT_DIR": self.directory,
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_WORK_TREE": self.tree,
            "GIT_INDEX_FILE": self.index,
        }
        given = {name: value for name, value in places.items() if value}
        return {"PATH": os.environ.get("PATH", os.defpath), **_SURROUNDINGS, **given, **self.person}

"""A repository as the workspace of attempts that work in worktrees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.activities.attempts import Attempts
from tests.activities.conftest import attempts
from tests.features.worktrees.repositories import Site, made

__all__ = ["attempts"]


@pytest.fixture
def site(attempts: Attempts, tmp_path: Path) -> Site:
    """A worker whose workspace is a repository with two files on `main`."""
    made(attempts.workspace, a="one\n", b="two\n")
    return Site(attempts, tmp_path / "worktrees")

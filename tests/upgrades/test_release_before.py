"""Plans of the release before are ended by this code, and its workers understand workers of this code."""

from __future__ import annotations

import subprocess

import pytest

from scripts.release import ROOT, upgrade


def release_before() -> str:
    """The newest release's tag; while there is none, the last commit."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "HEAD"


@pytest.mark.slow
def test_plans_that_the_release_before_began_are_ended_by_this_code() -> None:
    upgrade(release_before())  # ends the program if a plan does not complete, or a value is wrong

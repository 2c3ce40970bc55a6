"""What a test needs and this machine lacks: the test is skipped, or fails where everything is installed (CI=true)."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from activities.sandbox.sandbox import missing

INSTALLED = ("bwrap", "chromium")
"""What .ci/run installs; the rest depends on the kernel."""


def require_sandbox(level: str) -> None:
    """End the test unless commands can be shut in at this level."""
    problem = {str(each): problem for each, problem in missing().items()}.get(level)
    if problem:
        end(level, problem, os.environ)


def end(what: str, problem: str, environ: Mapping[str, str]) -> None:
    """End a test for want of something: a failure where .ci/run has installed it."""
    if what in INSTALLED and environ.get("CI") == "true":
        pytest.fail(problem)
    pytest.skip(problem)

"""What a test needs and this machine lacks: the test is skipped, or fails where everything is installed (CI=true).

Tests of the sandbox may not be skipped there for any reason: a defence that was not tried was not tested.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest

from plansurvive.activities.sandbox.sandbox import missing

INSTALLED = ("bwrap", "chromium", "gcc")
"""What .ci/run installs; the rest depends on the kernel."""
GUARDED = ("tests/activities/sandbox", "tests/attacks")
"""Directories of which no test may be skipped where CI=true."""
NOT_ROOT = "these tests do not run as root"
"""The only reason that counts, and only where it is true: an ordinary user cannot try what a root worker does."""


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make a failure of a skipped test of the sandbox; tests/conftest.py hands this to pytest."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _refuse(report, item)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a module that is skipped as a whole."""
    report = yield
    if report.skipped:
        _refuse(report, collector)
    return report


def _refuse(report: pytest.TestReport | pytest.CollectReport, node: pytest.Item | pytest.Collector) -> None:
    root = node.config.rootpath
    place = node.path.relative_to(root) if node.path.is_relative_to(root) else node.path
    if is_refused(place, str(report.longrepr), os.environ):
        report.longrepr = f"skipped, though CI=true and this is a test of the sandbox: {report.longrepr}"
        report.outcome = "failed"


def is_refused(test: Path, reason: str, environ: Mapping[str, str]) -> bool:
    """Whether this test, a path relative to the root of the tree, may not be skipped here for this reason."""
    is_guarded = any(test.is_relative_to(folder) for folder in GUARDED)
    return environ.get("CI") == "true" and is_guarded and not (NOT_ROOT in reason and os.geteuid() != 0)

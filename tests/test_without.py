"""Tests of the core pass where features are left out of FEATURES, and so are the tests of these features."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.features import FEATURES
from tests.nightly import only_nightly
from tests.without import copy_without, run_tests

CORE = ("tests/workflows/test_plan.py", "tests/workflows/test_retries.py", "tests/workflows/test_approvals.py")
"""Tests of plans that use no feature."""
MORE = ("tests/plans",)
"""More of the core: its pure tests, and tests of workflows that pass without any feature."""


@pytest.mark.parametrize("left_out", [only_nightly("all"), *map(only_nightly, FEATURES)])
def test_plans_of_the_core_pass_without_a_feature_and_without_all(left_out: str, tmp_path: Path) -> None:
    copy_without(FEATURES if left_out == "all" else [left_out], tmp_path / "tree")
    done = run_tests(tmp_path / "tree", CORE)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_all_of_the_core_passes_without_features(tmp_path: Path) -> None:
    copy_without(FEATURES, tmp_path / "tree")
    done = run_tests(tmp_path / "tree", MORE)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_tests_of_a_feature_are_left_out_with_it(tmp_path: Path) -> None:
    copy_without(["waiting"], tmp_path / "tree")
    of_waiting = ["tests/features/waiting/test_events.py", "tests/workflows/test_questions.py"]
    listed = run_tests(tmp_path / "tree", ["--collect-only", *of_waiting, *CORE]).stdout
    assert "test_plan.py::" in listed
    assert not [name for name in of_waiting if f"{name}::" in listed], listed


def test_only_what_is_a_feature_can_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no features: nothing"):
        copy_without(["nothing"], tmp_path)

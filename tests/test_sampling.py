"""What runs when: `make test` takes no slow test, .ci/run a sample of them, the nightly run all."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.nightly import TURNS, on_turn, sampled
from tests.test_imports import ROOT

FILES = ("tests/chaos/test_rollback_kills.py", "tests/chaos/test_kills.py", "tests/workflows/test_control.py")


PROGRAM = """
import sys, pytest
for flags in ([], ["--sample"], ["--nightly"]):
    print("a run:", pytest.main(["--collect-only", "-q", *flags, *sys.argv[1:]]))
"""
"""Collects three times in one process, which imports the tests once."""


def collected() -> list[set[str]]:
    """The ids of the tests in FILES, without their folders, that a run takes: by default, in CI, at night."""
    command = [sys.executable, "-c", PROGRAM, *FILES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *runs, end = re.split(r"^a run: (?:ExitCode\.OK|0)$", done.stdout, flags=re.MULTILINE)
    assert (len(runs), end.strip()) == (3, ""), done.stdout + done.stderr
    return [{line.rpartition("/")[2] for line in each.splitlines() if "::" in line} for each in runs]


@pytest.mark.slow
@pytest.mark.sampled
def test_a_sample_of_slow_tests_and_of_modes_runs_for_every_change_and_the_rest_at_night() -> None:
    by_default, in_ci, at_night = collected()
    assert by_default < in_ci < at_night
    undo = "test_rollback_kills.py::test_each_undo_takes_effect_once_and_in_reverse_however_often_workers_die"
    assert (f"{undo}[1-1-3]" in in_ci - by_default, f"{undo}[10-5-10]" in at_night - in_ci) == (True, True)
    modes = "test_control.py::test_a_paused_plan_starts_no_step_until_it_is_unpaused"
    assert [test for test in by_default if modes in test] == [f"{modes}[short]"]
    in_process = {f"{modes}[{history}]" for history in ("plain", "short", "uncached")}
    assert in_process <= in_ci
    assert {f"{modes}[{history}_on_server]" for history in ("plain", "short", "uncached")} <= at_night - in_ci
    assert any("test_kills.py" in test for test in in_ci)
    assert not [test for test in by_default if "kills.py" in test]


def test_parameters_are_spread_evenly_over_all_runs() -> None:
    marks = [
        "default" if isinstance(value, int) else " ".join(mark.name for mark in value.marks)
        for value in sampled(range(12), 2, in_ci=4, turn=0)
    ]
    rest = ["slow", "slow"]
    assert marks == ["default", *rest, "slow sampled", *rest, "default", *rest, "slow sampled", *rest]


@pytest.mark.parametrize(("size", "in_ci"), [(12, 4), (13, 5), (7, 7), (3, 8), (531, 4)])
def test_every_parameter_has_its_turn_in_ci(size: int, in_ci: int) -> None:
    def taken(turn: int) -> set[int]:
        marked = sampled(range(size), 0, in_ci, turn)
        return {number for number, value in enumerate(marked) if "sampled" in [mark.name for mark in value.marks]}

    days = [taken(turn) for turn in range(1_000, 1_000 + -(-size // in_ci))]
    assert set().union(*days) == {*range(size)}
    assert {len(day) for day in days} == {min(size, in_ci)}


def test_tests_take_turns_within_their_file_and_so_do_files_with_one() -> None:
    files = {f"tests/test_{number}.py": 1 + number % 5 for number in range(50)}
    tests = [f"{file}::test_{number}[a::b]" for file, count in files.items() for number in range(count)]
    days = [[*on_turn(tests, turn)] for turn in range(20, 20 + TURNS)]
    assert sorted(test for day in days for test in day) == sorted(tests)
    assert all(len(tests) * 0.35 < len(day) < len(tests) * 0.65 for day in days), [len(day) for day in days]
    [file, *_] = files
    assert [*on_turn(tests[:1], 20)] == [test for test in days[0] if test.startswith(f"{file}::")]


def test_ci_runs_the_tests_once() -> None:
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert [line for line in lines if line.startswith("make test")] == ["make test-sample", "make test-stack"]

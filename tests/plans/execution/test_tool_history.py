"""Files of a step and of a run: listed once, relative to the workspace, known again when a call names them."""

from __future__ import annotations

import pytest

from plans.activity_io import Return
from plans.execution.tool_history import note_files, relative
from plans.file_stamps import stamp_of
from tests.plans.building import run_of, step


def test_a_written_file_is_listed_once_per_step() -> None:
    run = run_of(step("a"), step("b"))
    for _ in range(2):
        note_files(run, "a", Return(duration=1, wrote={"out/x": None, "y": stamp_of(b"y")}, read={"z": stamp_of(b"z")}))
    note_files(run, "b", Return(duration=1, wrote={"y": None}))
    assert run.steps["a"].wrote == ["out/x", "y"]
    assert run.steps["b"].wrote == ["y"]


@pytest.mark.parametrize(
    ("path", "listed"), [("/w/a", "a"), ("/w//a/./b", "a/b"), ("a/", "a"), ("/ws/a", "/ws/a"), ("../a", "../a")]
)
def test_a_path_is_listed_relative_to_the_workspace(path: str, listed: str) -> None:
    assert relative(path, "/w") == relative(path, "/w/") == listed

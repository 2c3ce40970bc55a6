"""Files of a step and of a run: listed once, relative to the workspace, known again when a call names them."""

from __future__ import annotations

from typing import Any

import pytest

from plans.calls import Return
from plans.recording import files_in, note_files, relative
from tests.plans.building import run_of, step


def test_a_written_file_is_listed_once_per_step_and_a_read_one_is_known() -> None:
    run = run_of(step("a"), step("b"))
    for _ in range(2):
        note_files(run, "a", Return(duration=1, wrote=["out/x", "y"], read=["z"]))
    note_files(run, "b", Return(duration=1, wrote=["y"]))
    assert run.steps["a"].wrote == ["out/x", "y"]
    assert run.steps["b"].wrote == ["y"]
    assert set(run.known_files) == {"out/x", "y", "z"}


@pytest.mark.parametrize(
    ("args", "known"),
    [
        ({"path": "x"}, ["x"]),
        ({"path": "./x"}, ["x"]),
        ({"path": "/w/d/../x"}, ["x"]),
        ({"path": "other", "content": "x"}, ["x"]),
        ({"path": ""}, []),
        ({"path": 5, "more": ["x"]}, []),
        ({"path": "/elsewhere/x"}, []),
        ({"path": "x" * 5_000}, []),
    ],
)
def test_a_call_is_told_which_of_its_files_the_run_knows(args: dict[str, Any], known: list[str]) -> None:
    run = run_of(step("a"))
    note_files(run, "a", Return(duration=1, wrote=["x"]))
    assert files_in(run, args) == known


@pytest.mark.parametrize(
    ("path", "listed"), [("/w/a", "a"), ("/w//a/./b", "a/b"), ("a/", "a"), ("/ws/a", "/ws/a"), ("../a", "../a")]
)
def test_a_path_is_listed_relative_to_the_workspace(path: str, listed: str) -> None:
    assert relative(path, "/w") == relative(path, "/w/") == listed

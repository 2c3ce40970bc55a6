"""What a call is told about its files, and what the run learns from its return."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plansurvive.plans.activity_io import Facts, Note, Return
from plansurvive.plans.execution.file_tracking import known, track
from plansurvive.plans.expressions.references import Filled
from plansurvive.plans.file_stamps import NOTES_BYTES, stamp_of
from plansurvive.plans.run import Run
from tests.plans.building import run_of, step

NOW = datetime(2026, 1, 1, tzinfo=UTC)
X = stamp_of(b"x")


def known_of(run: Run, args: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The stamps a call of the first step with these arguments is given."""
    return dict(known(run, run.plan.steps[0], Filled(args, more.get("deferred", []))).stamps)


@pytest.mark.parametrize(
    ("args", "paths"),
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
def test_a_call_is_told_how_the_run_last_saw_its_files(args: dict[str, Any], paths: list[str]) -> None:
    run = run_of(step("a"))
    track(run, run.plan.steps[0], Return(duration=1, wrote={"x": X, "d": None}), NOW)
    assert known_of(run, args) == dict.fromkeys(paths, X)
    assert set(run.files.stamps) == {"x"}


def test_a_call_whose_path_the_workflow_cannot_know_is_told_of_all_files() -> None:
    run = run_of(step("a"))
    track(run, run.plan.steps[0], Return(duration=1, read={"x": X, "y": X}), NOW)
    assert set(known_of(run, {"path": "$big.name"}, deferred=[["path"]])) == {"x", "y"}
    assert known_of(run, {"path": "other", "content": "$big"}, deferred=[["content"]]) == {}


def test_files_of_one_name_in_two_workspaces_are_two_files() -> None:
    run = run_of(step("a"), step("b", queue="gpu"))
    run.facts = Facts(workspace="/w", workspaces={"gpu": "/g"})
    for at, content in enumerate((b"here", b"there")):
        track(run, run.plan.steps[at], Return(duration=1, read={"x": stamp_of(content)}), NOW)
    for at, content in enumerate((b"here", b"there")):
        args = {"path": ("/w/x", "/g/x")[at]}
        assert known(run, run.plan.steps[at], Filled(args, [])).stamps == {"x": stamp_of(content)}


def test_a_deleted_file_is_known_as_deleted() -> None:
    run = run_of(step("a"))
    track(run, run.plan.steps[0], Return(duration=1, read={"x": X}), NOW)
    track(run, run.plan.steps[0], Return(duration=1, deleted=["x"]), NOW)
    assert run.files.stamps["x"].state == "deleted"


def test_agents_md_are_brought_in_once_parents_first_and_use_up_the_budget() -> None:
    run = run_of(step("a"), step("b"))
    inner, outer = Note(path="src/AGENTS.md", bytes=10, text="inner"), Note(path="AGENTS.md", bytes=20, text="outer")
    track(run, run.plan.steps[0], Return(duration=1, notes=[inner]), NOW)
    track(run, run.plan.steps[1], Return(duration=1, notes=[outer, inner]), NOW)
    assert [(note.path, note.step_id) for note in run.notes] == [("AGENTS.md", "b"), ("src/AGENTS.md", "a")]
    told = known(run, run.plan.steps[0], Filled({"path": "src/x"}, []))
    assert set(told.notes_seen) == {"AGENTS.md", "src/AGENTS.md"}
    assert told.notes_left == NOTES_BYTES - 30
    assert known(run, run.plan.steps[0], Filled({"path": "x"}, [])).notes_seen == ["AGENTS.md"]


def test_reads_at_the_same_time_do_not_exceed_the_budget_of_agents_md() -> None:
    run = run_of(step("a"), step("b"), step("c"))
    half = NOTES_BYTES // 2 + 1
    for at, name in enumerate(("x", "y", "z")):
        size = half if name != "z" else NOTES_BYTES - half
        note = Note(path=f"{name}/AGENTS.md", bytes=size, text="t" * size)
        track(run, run.plan.steps[at], Return(duration=1, notes=[note]), NOW)
    assert [note.path for note in run.notes] == ["x/AGENTS.md", "z/AGENTS.md"]
    assert sum(note.bytes for note in run.notes) == NOTES_BYTES
    assert [("y/AGENTS.md" in text, "concurrent steps" in text) for text in run.steps["b"].warnings] == [(True, True)]
    told = known(run, run.plan.steps[0], Filled({"path": "y/f"}, []))
    assert (told.notes_left, told.notes_seen) == (0, ["y/AGENTS.md"])


def test_warnings_are_kept_with_the_step_and_in_the_log() -> None:
    run = run_of(step("a"))
    track(run, run.plan.steps[0], Return(duration=1, warnings=["'AGENTS.md' was cut"]), NOW)
    assert run.steps["a"].warnings == ["'AGENTS.md' was cut"]
    assert [(entry.kind, entry.step_id) for entry in run.log] == [("warning", "a")]

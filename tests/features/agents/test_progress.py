"""An agent's task list as the progress of its step: told once, then counted, and always small enough to be told."""

from __future__ import annotations

import json

import pytest

from plansurvive.features.agents.in_views import position, tasks_of
from plansurvive.features.agents.model.tasks import MAX_TASKS, TaskList
from plansurvive.features.agents.progress import NOTES_CHARACTERS, note_end, notes_text, progress_of
from plansurvive.features.children.steps import note_progress
from plansurvive.plans.child_state import AtWork
from plansurvive.plans.execution.messages import MAX_BYTES, AgentProgress, read
from plansurvive.plans.run import Status, StepState
from plansurvive.plans.views import text as views_text
from plansurvive.plans.views.views import notes_of
from tests.plans.building import NOW, run_of, step

TASKS = TaskList.of(["Find it", "Mend it", "Try it"]).begin()


def test_the_list_is_told_when_it_is_new_and_then_how_many_are_done() -> None:
    assert progress_of(None, is_new=True) == {}
    assert progress_of(TASKS, is_new=True) == {"done": 0, "tasks": ["Find it", "Mend it", "Try it"]}
    assert progress_of(TASKS.complete("found"), is_new=False) == {"done": 1, "notes": "found"}


def test_the_longest_list_there_can_be_fits_into_a_message() -> None:
    for text in ('"' * 2_000, "語" * 2_000, "x" * 2_000):
        tasks = TaskList.of([text] * MAX_TASKS)
        for _ in range(MAX_TASKS):
            tasks = tasks.complete(text)
        message = {"stepId": "s" * 128, "line": "語" * 500, **progress_of(tasks, is_new=True)}
        assert len(json.dumps(message, ensure_ascii=False).encode()) < MAX_BYTES
        assert len(read(AgentProgress, [message]).tasks or []) == MAX_TASKS


def test_a_step_shows_what_is_done_current_and_open_as_long_as_it_runs() -> None:
    run = run_of(step("a"))
    run.steps["a"].status = Status.RUNNING
    note_progress(run, AgentProgress(step_id="a", line="begun", tasks=["one", "two"], done=0), NOW)
    note_progress(run, AgentProgress(step_id="a", line="on", done=1), NOW)
    assert [task.status for task in tasks_of(run.steps["a"])] == ["done", "current"]
    assert position(tasks_of(run.steps["a"])) == "1/2 two"
    assert [(entry.text, entry.progress) for entry in run.log] == [("begun", 0), ("on", 50)]
    run.steps["a"].status = Status.FAILED
    assert [task.status for task in tasks_of(run.steps["a"])] == ["done", "open"]


def test_more_than_all_is_all_and_a_step_that_is_gone_is_nothing() -> None:
    run = run_of(step("a"))
    note_progress(run, AgentProgress(step_id="a", line="", tasks=["one"], done=7), NOW)
    note_progress(run, AgentProgress(step_id="gone", line="", tasks=["one"]), NOW)
    assert (run.steps["a"].part(AtWork).done, list(run.steps)) == (1, ["a"])
    assert position([]) == ""


def test_what_an_agent_says_about_its_work_becomes_the_notes_of_its_step() -> None:
    run = run_of(step("a", notes="by hand"))
    state = run.steps["a"]
    message = read(AgentProgress, [{"stepId": "a", "line": "on", "done": 1, "notes": "Loaded 1000 rows"}])
    note_progress(run, message, NOW)
    note_progress(run, AgentProgress(step_id="a", line="still on"), NOW)
    assert (state.notes, notes_of(run.plan.steps[0], state)) == ("Loaded 1000 rows", "by hand; Loaded 1000 rows")
    assert "Notes: by hand; Loaded 1000 rows" in views_text.text(run)
    tasks = [{"summary": "Loaded\n1000 rows"}, {"summary": ""}, {}]
    note_end(state, {"tasks": tasks, "answer": "All is clean. " + "More about it. " * 50})
    assert state.notes.startswith("Loaded 1000 rows; All is clean. More about it.")
    assert state.notes.endswith("More about it.")
    assert len(state.notes) < 250


@pytest.mark.parametrize(
    ("answer", "notes"),
    [
        ("Done.", "Done."),
        ("one two " * 200, ("one two " * 200)[:199] + "…"),
        ('{"rows": 1000}', ""),
        ("[1, 2]", ""),
        ("", ""),
        (None, ""),
        ("First. " + "x" * 300, "First."),
    ],
)
def test_of_the_answer_the_first_sentences_are_noted(answer: str | None, notes: str) -> None:
    state = StepState()
    note_end(state, {"tasks": [], "answer": answer})
    assert state.notes == notes


def test_of_many_summaries_the_newest_are_noted_and_it_is_said_that_there_were_more() -> None:
    notes = notes_text(f"summary {number} " + "x" * 150 for number in range(50))
    assert len(notes) <= NOTES_CHARACTERS
    assert notes.startswith("…; summary 47 ")
    assert notes.count("summary") == 3

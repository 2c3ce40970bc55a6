"""The task list, and what every combination of answer fields means."""

from __future__ import annotations

from itertools import product

import pytest

from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer, ToolUse
from plansurvive.features.agents.model.order import AgentEnd, limit_reached
from plansurvive.features.agents.model.tasks import (
    MEANINGS,
    Meaning,
    TaskList,
    after_calls,
    meaning_of,
    meaning_of_simple,
    remains,
)
from plansurvive.plans.views.models.agents import AgentLimits, AgentUsage, TaskStatus

CALL = ToolUse(tool="read_file", args={"path": "a"})


def answer(fields: str) -> AgentAnswer:
    """An answer with the fields named by their initials: r, c, t, f."""
    return AgentAnswer(
        reasoning="because" if "r" in fields else "",
        tool_calls=[CALL] if "c" in fields else [],
        task_completed="did it" if "t" in fields else "",
        final_answer="Done!" if "f" in fields else "",
    )


def worked_on(done: int = 0, count: int = 3) -> TaskList:
    """A list of which the first tasks are done, and a tool was called for the current one."""
    tasks = TaskList.of([f"objective {number}" for number in range(1, count + 1)]).begin()
    for number in range(done):
        tasks = tasks.called(1).complete(f"summary {number + 1}")
    return tasks.called(1)


def test_every_combination_of_the_four_fields_has_a_line() -> None:
    assert set(MEANINGS) == set(product((False, True), repeat=4))


@pytest.mark.parametrize(
    ("fields", "meaning"),
    [
        ("", Meaning.NOTHING),
        ("r", Meaning.ONLY_THOUGHT),
        ("c", Meaning.WORK),
        ("rc", Meaning.WORK),
        ("ct", Meaning.WORK_THEN_NEXT),
        ("rct", Meaning.WORK_THEN_NEXT),
        ("t", Meaning.NEXT),
        ("rt", Meaning.NEXT),
        ("f", Meaning.STOP),
        ("rf", Meaning.STOP),
        ("tf", Meaning.NEXT_THEN_STOP),
        ("rtf", Meaning.NEXT_THEN_STOP),
        ("cf", Meaning.WORK_THEN_TELL),
        ("rcf", Meaning.WORK_THEN_TELL),
        ("ctf", Meaning.WORK_THEN_NEXT_THEN_TELL),
        ("rctf", Meaning.WORK_THEN_NEXT_THEN_TELL),
    ],
)
@pytest.mark.parametrize("done", [0, 2, 3], ids=["first", "last", "none left"])
def test_each_of_the_sixteen_answers_does_what_its_line_says(fields: str, meaning: Meaning, done: int) -> None:
    tasks = worked_on(done)
    given = answer(fields)
    decision = meaning_of(given, tasks)
    assert MEANINGS[given.fields] is meaning
    assert decision.tasks is not None
    assert decision.calls == given.tool_calls
    completes = "t" in fields and done < 3
    assert decision.tasks.remaining == tasks.remaining - completes
    stops = "f" in fields and "c" not in fields and decision.tasks.remaining == 0
    assert decision.end is (AgentEnd.COMPLETED if stops else None)
    assert decision.answer == ("Done!" if stops else "")
    told = fields in ("", "r") or ("f" in fields and not stops) or (done == 3 and fields in ("t", "rt"))
    assert bool(decision.notice) is told


def test_calls_alone_go_on_with_the_current_task() -> None:
    decision = meaning_of(answer("c"), TaskList.of(["one", "two"]))
    assert decision.calls == [CALL]
    assert decision.tasks is not None
    assert [task.status for task in decision.tasks.tasks] == [TaskStatus.CURRENT, TaskStatus.OPEN]
    assert decision.end is None


def test_calls_and_task_completed_end_the_task_after_the_calls() -> None:
    decision = meaning_of(answer("ct"), TaskList.of(["one", "two"]))
    assert decision.calls == [CALL]
    assert decision.tasks is not None
    assert [task.status for task in decision.tasks.tasks] == [TaskStatus.DONE, TaskStatus.CURRENT]
    assert after_calls(decision, TaskList.of(["one", "two"]), []) == decision


def test_task_completed_alone_goes_to_the_next_task() -> None:
    decision = meaning_of(answer("t"), worked_on())
    assert decision.tasks is not None
    assert decision.tasks.position == 1
    assert decision.tasks.tasks[0].summary == "did it"
    assert decision.calls == []
    assert decision.notice == ""


def test_a_final_answer_stops_when_all_tasks_are_done() -> None:
    decision = meaning_of(answer("f"), worked_on(done=3))
    assert (decision.end, decision.answer) == (AgentEnd.COMPLETED, "Done!")


def test_a_final_answer_with_open_tasks_is_told_what_remains() -> None:
    decision = meaning_of(answer("f"), worked_on(done=1))
    assert decision.end is None
    assert "2 of 3 tasks remain" in decision.notice
    assert "Task 2: objective 2" in decision.notice
    assert "Task 1: objective 1" not in decision.notice
    assert decision.nudges == 1


def test_a_final_answer_with_calls_is_told_after_they_were_made() -> None:
    decision = meaning_of(answer("cf"), worked_on(done=2))
    assert decision.calls == [CALL]
    assert decision.end is None
    assert "not accepted" in decision.notice


def test_the_last_task_completed_with_a_final_answer_stops() -> None:
    decision = meaning_of(answer("tf"), worked_on(done=2))
    assert decision.end is AgentEnd.COMPLETED
    assert decision.tasks is not None
    assert decision.tasks.remaining == 0


def test_a_task_completed_without_any_call_is_doubted_once_then_accepted_with_a_note() -> None:
    tasks = TaskList.of(["one", "two"])
    doubted = meaning_of(answer("t"), tasks)
    assert doubted.tasks is not None
    assert "no tool was called" in doubted.notice
    assert doubted.tasks.position == 0
    accepted = meaning_of(answer("t"), doubted.tasks, doubted.nudges)
    assert accepted.tasks is not None
    assert accepted.tasks.position == 1
    assert accepted.note == accepted.tasks.tasks[0].note == "completed without any tool call"
    assert accepted.nudges == 0


def test_the_doubt_is_raised_for_each_task_anew() -> None:
    doubted = meaning_of(answer("t"), TaskList.of(["one", "two"])).tasks
    assert doubted is not None
    second = meaning_of(answer("t"), doubted.complete("did it"))
    assert "Task 2 was reported" in second.notice


def test_a_task_stays_open_when_a_call_that_was_to_end_it_failed() -> None:
    before = TaskList.of(["one", "two"])
    after = after_calls(meaning_of(answer("ct"), before), before, ["read_file"])
    assert after.tasks is not None
    assert after.tasks.position == 0
    assert after.tasks.tasks[0].calls == 1
    assert "Task 1 is still open" in after.notice
    assert "read_file" in after.notice


def test_a_failed_call_that_was_to_end_nothing_changes_nothing() -> None:
    before = TaskList.of(["one"])
    decision = meaning_of(answer("c"), before)
    assert after_calls(decision, before, ["read_file"]) == decision


@pytest.mark.parametrize("fields", ["", "r", "f"])
def test_reminders_in_a_row_are_bounded_and_end_in_a_state_that_says_so(fields: str) -> None:
    tasks, nudges = TaskList.of(["one", "two"]), 0
    for expected in (1, 2, 3):
        decision = meaning_of(answer(fields), tasks, nudges)
        assert decision.tasks is not None
        tasks, nudges = decision.tasks, decision.nudges
        assert nudges == expected
    given_up = meaning_of(answer(fields), tasks, nudges)
    assert given_up.end is AgentEnd.STALLED
    assert "3 reminders" in given_up.note
    assert given_up.answer == ""


@pytest.mark.parametrize("fields", ["c", "ct", "t", "cf"])
def test_progress_begins_the_count_of_reminders_anew(fields: str) -> None:
    assert meaning_of(answer(fields), worked_on(), nudges=2).nudges == 0


def test_a_model_that_stops_after_the_first_objective_finishes_all_four() -> None:
    tasks = TaskList.of(["create project", "write src/index.ts", "write public/index.html", "ingest all files"])
    nudges, story = 0, ["ct", "f", "ct", "f", "ct", "c", "t", "f"]
    for fields in story[:-1]:
        decision = meaning_of(answer(fields), tasks, nudges)
        assert decision.end is None
        assert decision.tasks is not None
        tasks, nudges = decision.tasks, decision.nudges
    assert tasks.remaining == 0
    assert meaning_of(answer("f"), tasks, nudges).end is AgentEnd.COMPLETED


def test_remains_says_when_nothing_does() -> None:
    assert remains(worked_on(done=3)) == "All 3 tasks are complete: return final_answer."


def test_a_finished_list_takes_no_further_moves() -> None:
    finished = worked_on(done=3)
    assert finished.complete("again") == finished.begin() == finished.called(2) == finished.doubt() == finished


@pytest.mark.parametrize("complex_mode", [True, False])
def test_an_answer_given_as_data_is_kept_as_json(complex_mode: bool) -> None:
    if complex_mode:
        assert AgentAnswer.model_validate({"final_answer": {"a": 1}}).final_answer == '{"a": 1}'
    else:
        assert SimpleAnswer.model_validate({"answer": [1]}).answer == "[1]"


def test_answers_are_read_in_snake_case_and_in_camel_case_and_null_is_absent() -> None:
    snake = {"reasoning": None, "tool_calls": None, "task_completed": " done ", "final_answer": ""}
    camel = {"taskCompleted": "done"}
    assert AgentAnswer.model_validate(snake) == AgentAnswer.model_validate(camel)


def test_simple_mode_continues_with_calls() -> None:
    decision = meaning_of_simple(SimpleAnswer(tool_calls=[CALL]))
    assert (decision.calls, decision.end, decision.notice) == ([CALL], None, "")


def test_simple_mode_stops_with_an_answer_and_its_confidence() -> None:
    decision = meaning_of_simple(SimpleAnswer.model_validate({"answer": "42", "confidence": "High"}))
    assert (decision.end, decision.answer, decision.confidence) == (AgentEnd.COMPLETED, "42", "high")


def test_simple_mode_makes_the_calls_before_it_takes_an_answer() -> None:
    decision = meaning_of_simple(SimpleAnswer(tool_calls=[CALL], answer="42"))
    assert decision.calls == [CALL]
    assert decision.end is None
    assert "Your answer came together" in decision.notice


def test_plan_actions_chooses_complex_mode_and_nothing_else_is_called() -> None:
    decision = meaning_of_simple(SimpleAnswer(tool_calls=[CALL, ToolUse(tool="plan_actions")]))
    assert decision.plan_actions
    assert decision.calls == []
    assert decision.note.endswith(": 1 other tool call not made")


def test_an_empty_simple_answer_is_reminded_until_the_limit() -> None:
    assert meaning_of_simple(SimpleAnswer(), 2).nudges == 3
    assert meaning_of_simple(SimpleAnswer(), 3).end is AgentEnd.STALLED


@pytest.mark.parametrize(
    ("used", "end"),
    [
        (AgentUsage(iterations=4, tokens=99, seconds=9.9), None),
        (AgentUsage(iterations=5), AgentEnd.ITERATIONS),
        (AgentUsage(tokens=100), AgentEnd.TOKENS),
        (AgentUsage(seconds=10.0), AgentEnd.TIMEOUT),
        (AgentUsage(iterations=5, tokens=100, seconds=10.0), AgentEnd.ITERATIONS),
    ],
)
def test_each_limit_ends_the_run_in_a_state_that_says_so(used: AgentUsage, end: AgentEnd | None) -> None:
    assert limit_reached(AgentLimits(iterations=5, tokens=100, seconds=10.0), used) is end

"""What a model wrote, read: one object wherever it stands, and a sentence for everything else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from plansurvive.features.agents.model.answers import AgentAnswer, SimpleAnswer
from plansurvive.features.agents.model.reading import parse_complex, parse_simple, parse_tasks
from plansurvive.features.agents.model.tasks import TaskList
from plansurvive.features.worker_features import answer_kinds
from plansurvive.plans.llm.answers import (
    Expected,
    PlanAnswer,
    Recovery,
    as_json,
    native_answer,
    parse_plan_answer,
    parse_recovery,
)
from plansurvive.plans.llm.json_extraction import AnswerProblem, json_object
from plansurvive.plans.model import ToolSpec

READ = ToolSpec(
    name="read_file",
    description="Read.",
    args_schema={
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["path"],
        "additionalProperties": False,
    },
)
TOOLS = {"read_file": READ}


def message(found: object) -> str:
    """The problem's message."""
    assert isinstance(found, AnswerProblem), found
    assert found.code == "LLM_BAD_ANSWER"
    assert found.problems
    return found.message


@pytest.mark.parametrize(
    "text",
    [
        '{"a": {"b": 1}}',
        '```json\n{"a": {"b": 1}}\n```',
        '```\n{"a": {"b": 1}}\n```',
        'Sure, here it is:\n\n```json\n{"a": {"b": 1}}\n```\nAnything else?',
        'The answer is {"a": {"b": 1}}.',
        'With {placeholders} and "quotes": {"a": {"b": 1}}',
        '\ufeff {"a": {"b": 1}} ',
    ],
)
def test_one_object_is_found_whatever_stands_around_it(text: str) -> None:
    assert json_object(text) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "was empty"),
        (" \n", "was empty"),
        ("I am sorry, I cannot do that.", "no JSON object"),
        ("[1, 2]", "not an object"),
        ('"text"', "not an object"),
        ('{"a": 1}\n{"b": 2}', "2 JSON objects"),
        ('{"a": 1} and also {"b": 2}', "2 JSON objects"),
        ('{"reasoning": "x", "tool_calls": [{"tool": "t", "args": {}}', "ends in the middle"),
        ('{"reasoning": "x', "ends in the middle"),
        ("{'a': 1}", "double quotes"),
        ('{"a": 1,}', "not valid JSON"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e999}', "finite"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": "\\ud800"}', "half a character"),
        ('{"a":' * 100 + "1" + "}" * 100, "nested deeper"),
        ("{" * 100_000, "ends in the middle"),
    ],
)
def test_anything_else_is_a_problem_with_a_sentence(text: str, told: str) -> None:
    assert told in message(json_object(text))


def test_no_beginning_of_an_answer_is_taken_for_a_whole_one() -> None:
    whole = json.dumps({"reasoning": 'a "quoted" {brace}', "tool_calls": [{"tool": "t", "args": {"x": {"y": "}"}}}]})
    assert all(isinstance(json_object(whole[:end]), AnswerProblem) for end in range(len(whole)))
    assert json_object(whole) == json.loads(whole)


def test_an_agents_answer_is_read_with_its_calls() -> None:
    text = '{"reasoning": null, "tool_calls": [{"tool": "read_file", "args": {"path": "a", "limit": null}}]}'
    answer = parse_complex(text, TOOLS)
    assert isinstance(answer, AgentAnswer)
    assert answer.tool_calls[0].args == {"path": "a"}
    assert answer.fields == (False, True, False, False)


def test_arguments_may_come_as_json_text() -> None:
    answer = parse_simple('{"tool_calls": [{"tool": "read_file", "args": "{\\"path\\": \\"a\\"}"}]}', TOOLS)
    assert isinstance(answer, SimpleAnswer)
    assert answer.tool_calls[0].args == {"path": "a"}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"tool_calls": [{"tool": "raed_file", "args": {}}]}, "Unknown tool: raed_file; did you mean 'read_file'?"),
        ({"tool_calls": [{"tool": "rm", "args": {}}]}, "Unknown tool: rm"),
        ({"tool_calls": [{"tool": "read_file", "args": {}}]}, "needs 'path'"),
        ({"tool_calls": [{"tool": "read_file", "args": {"path": 1}}]}, "args.path: should be a string; it is 1"),
        ({"tool_calls": [{"tool": "read_file", "args": {"path": "a", "pth": "b"}}]}, "no argument 'pth'"),
        ({"tool_calls": [{"tool": "read_file", "args": "{path"}]}, "tool_calls.0.args"),
        ({"tool_calls": [{"tool": "read_file", "args": [1]}]}, "tool_calls.0.args"),
        ({"tool_calls": {"tool": "read_file"}}, "tool_calls"),
        ({"tool_calls": [{"args": {}}]}, "tool_calls.0.tool"),
        ({"tool_calls": [{"tool": "read_file", "args": {"path": "x" * 70_000}}]}, "larger than 65536 bytes"),
        ({"toolcalls": []}, "did you mean 'tool_calls'?"),
        ({"final_anwser": "x"}, "did you mean 'final_answer'?"),
        ({"task_completed": True}, "task_completed"),
    ],
)
def test_a_bad_call_or_field_is_told_with_its_place(fields: dict[str, Any], told: str) -> None:
    assert told in message(parse_complex(json.dumps(fields), TOOLS))


def test_all_bad_calls_are_told_at_once() -> None:
    calls = [{"tool": "rm", "args": {}}, {"tool": "read_file", "args": {}}]
    found = parse_complex(json.dumps({"tool_calls": calls}), TOOLS)
    assert isinstance(found, AnswerProblem)
    assert [text.split(":")[0] for text in found.problems] == ["tool_calls.0", "tool_calls.1"]


def test_a_field_of_another_kind_is_overlooked() -> None:
    answer = parse_simple('{"answer": "42", "mood": "good"}', TOOLS)
    assert isinstance(answer, SimpleAnswer)
    assert answer.answer == "42"


def test_confidence_is_one_of_three() -> None:
    assert "confidence" in message(parse_simple('{"answer": "42", "confidence": "0.9"}', TOOLS))


def test_native_tool_calls_become_the_contracts_form() -> None:
    text = native_answer("I look first.", [("read_file", '{"path": "a"}')])
    answer = parse_complex(text, TOOLS)
    assert isinstance(answer, AgentAnswer)
    assert (answer.reasoning, answer.tool_calls[0].args) == ("I look first.", {"path": "a"})
    both = native_answer('{"task_completed": "done"}', [("read_file", '{"path": "a"}')])
    joined = parse_complex(both, TOOLS)
    assert isinstance(joined, AgentAnswer)
    assert joined.fields == (False, True, True, False)
    assert "args" in message(parse_complex(native_answer(None, [("read_file", "{broken")]), TOOLS))


def test_tasks_are_read_one_objective_each() -> None:
    assert parse_tasks('{"tasks": ["one", " two\\nlines "]}') == TaskList.of(["one", "two lines"])


@pytest.mark.parametrize(
    "text", ['{"tasks": []}', '{"tasks": "one"}', '{"tasks": [1]}', '{"tasks": [" "]}', "{}", '{"tasks": null}']
)
def test_a_task_list_without_tasks_is_a_problem(text: str) -> None:
    assert "tasks:" in message(parse_tasks(text))


def test_too_many_tasks_are_a_problem() -> None:
    assert "1 to 50" in message(parse_tasks(json.dumps({"tasks": ["x"] * 51})))


STEP = {"id": "s1", "tool": "read_file", "args": {"path": "a"}, "dependsOn": []}


def test_a_plan_is_read_nulls_left_out() -> None:
    step = STEP | {"args": {"path": "a", "limit": None}, "critical": None, "requiresApproval": None}
    found = parse_plan_answer(json.dumps({"title": None, "steps": [step], "estimatedDuration": 120}), TOOLS)
    assert isinstance(found, PlanAnswer)
    assert found.plan.steps[0].args == {"path": "a"}
    assert found.plan.estimated_duration == 120
    assert found.notes == []


def test_a_bare_list_of_steps_is_a_plan() -> None:
    assert isinstance(parse_plan_answer(json.dumps([STEP])), PlanAnswer)


def test_what_only_people_may_set_is_left_out_and_noted() -> None:
    step = STEP | {"requiresApproval": False, "approval": {"timeout": 1.0, "onTimeout": "approve"}}
    data = {"id": "mine", "workspace": "/", "maxParallel": 100, "steps": [step]}
    found = parse_plan_answer(json.dumps(data))
    assert isinstance(found, PlanAnswer)
    assert (found.plan.id, found.plan.workspace, found.plan.max_parallel) == (None, None, None)
    assert found.plan.steps[0].requires_approval is None
    assert found.plan.steps[0].approval is None
    assert len(found.notes) == 5


def test_notes_of_a_step_that_the_model_writes_are_kept() -> None:
    step = {"id": "a", "tool": "read_file", "args": {"path": "a"}, "notes": "Loads 1000 rows"}
    answer = parse_plan_answer(json.dumps({"steps": [step]}))
    assert isinstance(answer, PlanAnswer)
    assert (answer.plan.steps[0].notes, answer.notes) == ("Loads 1000 rows", [])


def test_a_step_may_ask_for_approval() -> None:
    found = parse_plan_answer(json.dumps({"steps": [STEP | {"requiresApproval": True}]}))
    assert isinstance(found, PlanAnswer)
    assert found.plan.steps[0].requires_approval is True


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"steps": []}, "the plan is empty"),
        ({}, "'steps' is missing"),
        ({"steps": [STEP | {"dependson": ["x"]}]}, "did you mean 'dependsOn'?"),
        ({"steps": [{"id": "a b", "tool": "read_file"}]}, "is not a valid id"),
        ({"steps": "none"}, "steps"),
        ({"steps": [1]}, "step"),
        ({"steps": [STEP | {"tool": 7}]}, "tool"),
    ],
)
def test_a_plan_of_the_wrong_shape_is_told_whole(data: dict[str, Any], told: str) -> None:
    assert told in message(parse_plan_answer(json.dumps(data), TOOLS))


def test_five_thousand_bad_steps_give_a_bounded_message() -> None:
    found = parse_plan_answer(json.dumps({"steps": [{"id": "a b"}] * 5_000}))
    assert isinstance(found, AnswerProblem)
    assert len(found.problems) == 51
    assert re.search(r"and \d+ more", found.message)


def test_a_plan_of_too_many_steps_is_told_before_it_is_read() -> None:
    assert "3 steps are too many; use at most 2" in message(
        parse_plan_answer(json.dumps({"steps": [7, 7, 7]}), TOOLS, 2)
    )
    assert isinstance(parse_plan_answer(json.dumps([STEP]), TOOLS, 1), PlanAnswer)


@pytest.mark.parametrize(
    "data",
    [
        {"action": "retry", "args": {"path": "b"}, "reason": "it moved"},
        {"action": "retry", "args": '{"path": "b"}', "steps": None, "reason": "it moved"},
        {"action": "skip", "args": None, "steps": [], "reason": "it moved"},
        {"action": "insert", "steps": [STEP], "reason": "it moved"},
        {"action": "abort"},
    ],
)
def test_each_recovery_is_read(data: dict[str, Any]) -> None:
    found = parse_recovery(json.dumps(data), READ, TOOLS)
    assert isinstance(found, Recovery), found
    assert found.action == data["action"]
    assert found.args == ({"path": "b"} if data["action"] == "retry" else None)
    assert len(found.steps) == (data["action"] == "insert")


def test_an_inserted_step_cannot_waive_its_approval() -> None:
    found = parse_recovery(json.dumps({"action": "insert", "steps": [STEP | {"requiresApproval": False}]}))
    assert isinstance(found, Recovery)
    assert found.steps[0].requires_approval is None
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"action": "explode"}, "action"),
        ({}, "action"),
        ({"action": "insert"}, "steps:"),
        ({"action": "skip", "steps": [STEP]}, "steps:"),
        ({"action": "skip", "args": {}}, "args:"),
        ({"action": "retry", "args": [1]}, "args"),
        ({"action": "insert", "steps": [{"id": "a b", "tool": "t"}]}, "is not a valid id"),
        ({"action": "insert", "steps": "x"}, "steps"),
        ({"action": "insert", "steps": [STEP] * 21}, "21 steps are too many"),
    ],
)
def test_a_bad_recovery_is_told(data: dict[str, Any], told: str) -> None:
    assert told in message(parse_recovery(json.dumps(data), READ, TOOLS))


ANSWERS: list[tuple[str, dict[str, Any]]] = [
    ("simple", {"tool_calls": [{"tool": "read_file", "args": '{"path": "a"}'}]}),
    ("simple", {"answer": " 42 ", "confidence": "HIGH", "tool_calls": None}),
    ("complex", {"reasoning": "why", "toolCalls": [], "finalAnswer": {"n": 1}}),
    ("tasks", {"tasks": ["one", "two"]}),
    ("plan", {"title": None, "steps": [STEP | {"requiresApproval": False, "when": None}], "workspace": "/"}),
    ("recovery", {"action": "retry", "args": {"path": "b", "limit": None}, "reason": "why"}),
    ("recovery", {"action": "insert", "steps": [STEP]}),
]


@pytest.mark.uses("agents", "planning")
@pytest.mark.parametrize(("kind", "answer"), ANSWERS, ids=str)
def test_an_answer_is_the_same_after_its_way_through_json(kind: str, answer: dict[str, Any]) -> None:
    found = answer_kinds()[kind].read(json.dumps(answer), Expected(kind=kind, tools=[READ], failed="read_file"))
    assert not isinstance(found, AnswerProblem)
    again = type(found).model_validate(json.loads(json.dumps(as_json(found))))
    assert again == found
    assert as_json(again) == as_json(found)
    if isinstance(found, PlanAnswer):
        assert isinstance(again, PlanAnswer)
        assert again.plan.steps[0].model_fields_set == found.plan.steps[0].model_fields_set

"""What a question is, which values answer it, and that hostile ones cost little."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.waiting.language import LANGUAGE
from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.definition.questions import (
    MAX_CHARACTERS,
    misfit,
    on_timeout,
    problem,
    value_of,
    written_problems,
)
from tests.features.waiting.asking import SPECS, ask, wait
from tests.plans.building import plan_of
from tests.plans.hostile_schemas import ENDLESS, HARMLESS, LARGE

NUMBER = {"type": "integer", "minimum": 1}


@pytest.mark.parametrize(
    ("args", "value", "fits"),
    [
        ({}, "text", True), ({}, "  ", False), ({}, 5, False), ({}, None, False),
        ({"choices": ["a", 1]}, "a", True), ({"choices": ["a", 1]}, 1.0, True), ({"choices": ["a", 1]}, True, False),
        ({"choices": ["a"]}, ["a"], False), ({"schema": NUMBER}, 3, True), ({"schema": NUMBER}, 0, False),
        ({"schema": {"type": "null"}}, None, True), ({"schema": {}}, {"any": ["thing"]}, True),
    ],
)  # fmt: skip
def test_a_value_answers_a_question_or_the_reason_says_why_not(args: dict[str, Any], value: Any, fits: bool) -> None:
    assert (misfit(args, value) == "") is fits


@pytest.mark.parametrize(
    ("args", "text", "value"),
    [
        ({}, "5", "5"), ({}, '"quoted"', "quoted"), ({"schema": NUMBER}, "5", 5), ({"schema": NUMBER}, "five", "five"),
        ({"schema": {"type": "string"}}, "true", "true"), ({"choices": [1, 2]}, "2", 2), ({"choices": ["2"]}, "2", "2"),
        ({"schema": {"type": "array"}}, "[1]", [1]), ({"schema": NUMBER}, "0", 0),
    ],
)  # fmt: skip
def test_a_typed_text_is_json_where_that_answers_the_question_else_text(
    args: dict[str, Any], text: str, value: Any
) -> None:
    found = value_of(args, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("args", "field", "part"),
    [
        ({"schema": {"type": "nonsense"}}, "args.schema", "not a valid JSON Schema"),
        ({"schema": {"$ref": "https://example.com/x"}}, "args.schema", "$ref"),
        ({"schema": {"pattern": "(?=x)"}}, "args.schema", "look-arounds"),
        ({"schema": NUMBER, "default": 0}, "args.default", "does not answer the question"),
        ({"choices": ["a", "b"], "default": "c"}, "args.default", "not one of the choices"),
        ({"default": 5}, "args.default", "is not a text"),
        ({"onTimeout": "default", "timeout": 5}, "args.onTimeout", "there is no default"),
        ({"choices": ["a", "b", "a"]}, "args.choices", '"a" occurs twice'),
        ({"choices": [1, 1.0]}, "args.choices", "occurs twice"),
        ({"choices": ["a"], "schema": NUMBER}, "args.choices", "not both"),
        ({"choices": []}, "args.choices", "should be non-empty"),
        ({"choices": ["x" * 40_000]}, "args.question", "characters of JSON"),
        ({"timeout": -1}, "args.timeout", "a number above 0 and of at most 31536000; it is -1"),
        ({"onTimeout": "retry"}, "args.onTimeout", "should be 'default', 'fail' or 'skip'; it is 'retry'"),
    ],
)  # fmt: skip
def test_plan_check_finds_what_is_wrong_with_a_question(args: dict[str, Any], field: str, part: str) -> None:
    (found,) = problems(plan_of(ask(**args)), SPECS, language=LANGUAGE)
    assert (found.code, found.field) == ("INVALID_ARGS", field)
    assert part in found.message


def test_plan_check_leaves_open_what_is_only_known_when_the_step_asks() -> None:
    plan = plan_of(
        ask("list", schema={"type": "array"}),
        ask(choices="$list", default="x"),
        ask("deep", schema={"enum": "$list"}, default=1),
    )
    assert problems(plan, SPECS, language=LANGUAGE) == []
    assert problem({"question": "?", "choices": ["a", "a"]}) == 'args.choices: "a" occurs twice; each choice must ' \
        "differ from the others"  # fmt: skip


@pytest.mark.parametrize(
    ("args", "field", "part"),
    [
        ({"event": "no name"}, "args.event", "cannot name an event"),
        ({"match": "id =="}, "args.match", "not a JMESPath expression"),
        ({"match": "id == '{{ask.id}}'"}, "args.match", "outside quotes"),
        ({"match": "$ask"}, "args.match", "the value itself as code"),
        ({"match": "nofun(@)"}, "args.match", "there is no function"),
    ],
)
def test_plan_check_finds_what_is_wrong_with_a_wait(args: dict[str, Any], field: str, part: str) -> None:
    found = problems(plan_of(ask(schema={}), wait(**args)), SPECS, language=LANGUAGE)
    assert {each.field for each in found} == {field}
    assert any(part in each.message for each in found)


def test_a_wait_may_name_its_event_and_its_data_after_earlier_values() -> None:
    plan = plan_of(ask(schema={}), wait(event="order.{{ask.id}}.paid", match="id == {{ask.id}} && total > `5`"))
    assert problems(plan, SPECS, language=LANGUAGE) == []


@pytest.mark.parametrize(
    ("args", "how"),
    [({}, "fail"), ({"default": "a"}, "default"), ({"default": "a", "onTimeout": "skip"}, "skip"),
     ({"default": None}, "fail"), ({"onTimeout": None, "default": "a"}, "default")],
)  # fmt: skip
def test_without_an_answer_in_time_the_default_counts_if_there_is_one(args: dict[str, Any], how: str) -> None:
    assert on_timeout(args) == how


def bomb(depth: int) -> dict[str, Any]:
    """A schema that is small, and takes two to the power of `depth` steps to apply."""
    names = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(depth)}
    return {"$defs": {**names, f"d{depth}": {"type": "null"}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (bomb(40), "x"),
        ({"$ref": "#"}, "x"),
        ({"items": {"allOf": [{"not": {"pattern": "(x+x+)+y" * 50}}] * 20}}, ["x" * 1_000] * 15),
        ({"type": "array", "uniqueItems": True, "items": {"enum": [[n] for n in range(500)]}}, [[1]] * 8_000),
    ],
    ids=["doubling", "endless", "patterns", "equality"],
)
def test_a_schema_bomb_is_refused_after_little_work(schema: dict[str, Any], value: Any) -> None:
    question = {"question": "?", "schema": schema}
    why = written_problems(question) or misfit(question, value)
    assert "too long" in str(why) or "cannot be applied" in str(why) or "equal" in str(why)


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("name", sorted(ENDLESS.keys() - LARGE))
def test_what_would_keep_anybody_busy_for_minutes_is_decided_by_count(name: str) -> None:
    schema, value = ENDLESS[name]
    question = {"question": "?", "schema": schema}
    assert written_problems(question) or misfit(question, value) or name in HARMLESS


def test_a_question_of_a_megabyte_is_refused() -> None:
    (found,) = problems(plan_of(ask(question="x" * 1_000_000)), SPECS, language=LANGUAGE)
    assert (found.field, len(found.message) < 500) == ("args.question", True)
    assert "characters of JSON" in problem({"question": "?", "schema": {"description": "x" * MAX_CHARACTERS}})

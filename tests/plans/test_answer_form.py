"""The form of a final answer: what is no schema, what is no answer of it; neither ever raises."""

from __future__ import annotations

from typing import Any

import pytest

from plans.answer_form import form_problem, schema_problem, value_of

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
NO_SCHEMAS: list[dict[str, Any]] = [
    {"type": "strng"}, {"type": 5}, {"required": 5}, {"properties": 5}, {"pattern": "("}, {"multipleOf": 0},
    {"minimum": "a"}, {"properties": {"n": {"type": "strng"}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", NO_SCHEMAS, ids=repr)
def test_what_is_no_json_schema_is_told(schema: dict[str, Any]) -> None:
    assert schema_problem(schema).startswith("this is no JSON Schema: ")


def test_the_place_of_the_mistake_is_named() -> None:
    assert "properties.n.type: 'strng'" in schema_problem(NO_SCHEMAS[-1])


def test_a_schema_nested_without_end_is_told() -> None:
    schema: dict[str, Any] = {}
    for _ in range(400):
        schema = {"not": schema}
    assert schema_problem(schema)


def test_a_schema_that_can_be_used_is_no_problem() -> None:
    assert schema_problem(NUMBER) == schema_problem({}) == ""


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ('{"n": 3}', ""),
        ("three", "must be a JSON text"),
        ('{"n": "three"}', "n: 'three' is not of type 'integer'"),
        ("{}", "the whole: 'n' is a required property"),
        ('{"n": 1, "half": "\\ud83d"}', "lone surrogate"),
        ('{"n": 1, "more": NaN}', "NaN is no JSON number"),
        ("[" * 50_000, "nested deeper"),
    ],
    ids=["good", "prose", "type", "required", "surrogate", "nan", "deep"],
)
def test_an_answer_is_held_against_the_form(answer: str, problem: str) -> None:
    found = form_problem(NUMBER, answer)
    assert problem in found
    assert bool(found) == bool(problem)


@pytest.mark.parametrize("target", ["#", "#/nope", "http://127.0.0.1:9/schema.json"])
def test_a_reference_that_leads_nowhere_is_told_and_none_is_followed_out_of_the_schema(target: str) -> None:
    assert "cannot be applied" in form_problem({"$ref": target}, "1")


def test_the_value_is_what_was_judged() -> None:
    assert value_of('{"n": 3}') == value_of('```json\n{"n": 3}\n```') == {"n": 3}

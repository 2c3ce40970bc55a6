"""The form of a final answer: what is no schema, what is no answer of it; neither ever raises."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from plansurvive.plans.definition import output_schema
from plansurvive.plans.definition.output_schema import schema_problem, value_of
from tests.plans.hostile_schemas import ENDLESS, HARMLESS, fanning_out

"""The schema that the count refuses soonest; the others run nightly."""
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def form_problem(schema: dict[str, Any], answer: str) -> str:
    """How an answer violates the schema, with all the time that it takes."""
    return output_schema.form_problem(schema, answer, lambda: True)


NO_SCHEMAS: list[dict[str, Any]] = [
    {"type": "strng"}, {"type": 5}, {"required": 5}, {"properties": 5}, {"pattern": 5}, {"multipleOf": 0},
    {"minimum": "a"}, {"properties": {"n": {"type": "strng"}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", NO_SCHEMAS, ids=repr)
def test_what_is_no_json_schema_is_told(schema: dict[str, Any]) -> None:
    assert schema_problem(schema).startswith("not a valid JSON Schema: ")


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
        ("three", "must be JSON that conforms"),
        ('{"n": "three"}', "n: 'three' is not of type 'integer'"),
        ("{}", "top level: 'n' is a required property"),
        ('{"n": 1, "half": "\\ud83d"}', "lone surrogate"),
        ('{"n": 1, "more": NaN}', "NaN is not a JSON number"),
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


@pytest.mark.parametrize("name", ENDLESS)
def test_a_schema_that_takes_too_long_is_told_by_the_clock(name: str) -> None:
    schema, answer = ENDLESS[name]
    started, end = time.thread_time(), time.monotonic() + 0.05
    found = output_schema.form_problem(schema, json.dumps(answer), lambda: time.monotonic() < end)
    assert time.thread_time() - started < 3
    assert "takes too long" in found or (found == "" and name in HARMLESS)


BACKTRACKING = "^(a+)+$", "^(a|aa)+$", "^([a-z]+)*$", "(.*)*,(.*)*;"


@pytest.mark.parametrize("pattern", BACKTRACKING)
@pytest.mark.parametrize("place", ["pattern", "patternProperties", "additionalProperties", "propertyNames"])
def test_no_pattern_takes_longer_than_the_text_is_long(place: str, pattern: str) -> None:
    text = "a" * 30_000 + "!"
    within: dict[str, dict[str, Any]] = {
        "pattern": {"pattern": pattern},
        "patternProperties": {"patternProperties": {pattern: False}},
        "additionalProperties": {"patternProperties": {pattern: True}, "additionalProperties": False},
        "propertyNames": {"propertyNames": {"pattern": pattern}},
    }
    answer = f'"{text}"' if place == "pattern" else f'{{"{text}": 1}}'
    assert schema_problem(within[place]) == ""
    assert bool(form_problem(within[place], answer)) == (place != "patternProperties")


def test_many_items_are_compared_at_once() -> None:
    items = ",".join(f'{{"n": [{n}]}}' for n in range(5000))
    assert form_problem({"uniqueItems": True}, f"[{items}]") == ""
    assert "some items are equal" in form_problem({"uniqueItems": True}, f'[{items}, {{"n": [1.0]}}]')


DIALECT = "http://json-schema.org/draft-07/schema#"
UNSUPPORTED: list[tuple[dict[str, Any], str]] = [
    ({"pattern": "("}, "pattern '(': missing ): ("),
    ({"pattern": "(?!x)a"}, "look-arounds and back-references are not supported"),
    ({"properties": {"enum": {"pattern": "(a)\\1"}}}, "look-arounds and back-references are not supported"),
    ({"patternProperties": {"(?<=a)b": {}}}, "not supported"),
    ({"pattern": "\ud83d"}, "not a valid JSON Schema"),
    ({"items": {"unevaluatedProperties": False}}, "unevaluatedProperties is not supported"),
    ({"$defs": {"a": {"$dynamicRef": "#x"}}}, "$dynamicRef is not supported"),
    ({"items": {"$schema": DIALECT}}, "$schema is not supported within a schema"),
    ({"properties": {"default": {"$id": "x"}}}, "$id is not supported within a schema"),
    ({"$ref": "#/default", "default": {"minimum": "a"}}, "$ref '#/default' does not refer to a part of this schema"),
    ({"$ref": "http://127.0.0.1:9/schema.json"}, "does not refer to a part of this schema"),
    ({"pattern": "^\\pL{900}$"}, "pattern too large"),
    ({"patternProperties": {f"^\\pL{{9}}{n}$": {} for n in range(900)}}, "the patterns are too large in total"),
    ({"allOf": [{}] * 15_000}, "the schema is too large"),
    ({"required": [f"n{n}" for n in range(20_000)]}, "the schema is too large"),
    ({"title": object()}, "not a valid JSON Schema"),
]


@pytest.mark.parametrize(("schema", "problem"), UNSUPPORTED, ids=[problem for _, problem in UNSUPPORTED])
def test_what_has_no_bounds_is_refused_before_it_is_asked_for(schema: dict[str, Any], problem: str) -> None:
    assert problem in schema_problem(schema)


DEEP: dict[str, Any] = {"$defs": fanning_out(40)["$defs"], "$schema": DIALECT, "$ref": "#/$defs/l0"}


@pytest.mark.parametrize(
    "schema",
    [{"items": DEEP}, {"$ref": "#/default", "default": {"unevaluatedItems": False}}, {"properties": 5}],
    ids=str,
)
def test_a_schema_that_nobody_checked_is_not_applied(schema: dict[str, Any]) -> None:
    assert "cannot be applied" in form_problem(schema, "[1]")


STRANGE: list[dict[str, Any]] = [
    {"dependentRequired": {"pattern": ["a"]}}, {"x-ui": {"pattern": None}}, {"x-ui": {"patternProperties": 5}},
    {"x-ui": {"$ref": 5, "$schema": DIALECT}}, {"const": {"pattern": ["("]}}, {"examples": [{"patternProperties": 3}]},
    {"properties": {"pattern": {"type": "string"}, "$schema": {}, "$ref": {"type": "string"}, "enum": {}}},
    {"$defs": {"a/b~c": {}, "d e": True}, "anyOf": [{"$ref": "#/$defs/a~1b~0c"}, {"$ref": "#/$defs/a~1b~0c"}]},
    {"$ref": "#/$defs/a%25b", "$defs": {"a%b": {}}},
    {"$schema": DIALECT, "$id": "urn:x", "properties": {"a": {"$ref": "#"}}},
    {"pattern": "^\\pL+\\z"}, {"pattern": "[\\u4e00-\\u9fa5]\\\\u"},
    {"pattern": "(?P<year>[0-9]{4})"}, {"pattern": "a{99999999999}"},
]  # fmt: skip


@pytest.mark.parametrize("schema", STRANGE, ids=str)
def test_a_schema_may_hold_what_only_looks_like_a_keyword(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) == ""
    assert "cannot be applied" not in form_problem(schema, '{"a": {}}')


SAME: list[tuple[dict[str, Any], list[str]]] = [
    ({"pattern": "^[a-c]+$"}, ['"abc"', '"abd"', "5"]),
    ({"patternProperties": {"^n": {"type": "integer"}}}, ['{"n1": 1}', '{"n": "a"}', '{"m": 1}', "[]"]),
    ({"patternProperties": {"^n": {}}, "additionalProperties": False}, ['{"n1": 1}', '{"m": 1}', "[]"]),
    ({"properties": {"a": {}}, "additionalProperties": {"type": "null"}}, ['{"a": 1, "b": null}', '{"b": 1}']),
    ({"uniqueItems": True}, ["[1, 2]", "[1, 1.0]", "[1, true]", "[[1], [1]]", "[0, false]", '["1", 1]', "5"]),
    ({"uniqueItems": False}, ["[1, 1]"]),
    ({"const": {"$schema": "x", "a": [1]}}, ['{"$schema": "x", "a": [1]}', '{"a": [1]}']),
    ({"enum": [{"$schema": "x"}, 1]}, ['{"$schema": "x"}', "{}", "1", "true"]),
    ({"pattern": "^[\\u4e00-\\u9fa5]$"}, ['"\u4e00"', '"a"']),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, ["1", '"a"']),
    ({"anyOf": [{"type": "string"}, {"minimum": 3}]}, ['"a"', "4", "2"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "answers"), SAME, ids=str)
def test_an_answer_is_judged_as_json_schema_says(schema: dict[str, Any], answers: list[str]) -> None:
    for answer in answers:
        assert bool(form_problem(schema, answer)) != Draft202012Validator(schema).is_valid(json.loads(answer)), answer


def test_the_value_is_what_was_judged() -> None:
    assert value_of('{"n": 3}') == value_of('```json\n{"n": 3}\n```') == {"n": 3}

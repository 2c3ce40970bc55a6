"""A schema with fields in place of keywords is refused before anything runs, with the schema that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.agents.language import LANGUAGE as OF_AGENTS
from plansurvive.features.coding_agents.language import LANGUAGE as OF_CODING_AGENTS
from plansurvive.features.waiting.language import LANGUAGE as OF_WAITING
from plansurvive.plans.definition.checks.validation import certain, errors, problems
from plansurvive.plans.definition.language import Language
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.definition.schema_keywords import no_keywords
from plansurvive.plans.model import Plan
from tests.plans.building import spec

LANGUAGE = Language.of([OF_AGENTS, OF_CODING_AGENTS, OF_WAITING])
TOOLS = {"agent": "outputSchema", "coding_agent": "schema", "ask": "schema"}
FIELDS = "{type: object, properties: {bugs: {type: integer}, summary: {type: string}}}"
SAID: list[tuple[dict[str, Any], str]] = [
    ({"bugs": "integer", "summary": "string"}, "'bugs', 'summary' are not keywords of JSON Schema; for fields write {"),
    ({"bugs": "integer", "summary": "string"}, FIELDS),
    ({"bugs": "int", "summary": "str"}, FIELDS),
    ({"bugs": {"type": "integer"}, "summary": {"type": "string"}}, FIELDS),
    ({"type": "object", "bugs": "integer", "summary": "text"}, FIELDS),
    ({"title": "string", "bugs": "integer"}, "properties: {bugs: {type: integer}, title: {type: string}}"),
    ({"files": ["string"]}, "{files: {type: array, items: {type: string}}}"),
    ({"place": {"line": "int"}}, "{place: {type: object, properties: {line: {type: integer}}}}"),
    ({"bugs": "how many there are"}, "{bugs: {type: string, description: how many there are}}"),
    ({"type": "array", "items": {"path": "string"}}, "items: 'path' is not a keyword"),
    ({"type": "object", "propertes": {"a": {}}}, "did you mean 'properties'?"),
    ({"type": "object", "properties": {"a": {"item": {}, "type": "array"}}}, "properties.a: 'item' is not a keyword"),
    ({"count": 3}, "which has `type`, `properties`, `items`, `enum`"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "says"), SAID)
@pytest.mark.parametrize("tool", TOOLS)
def test_names_that_are_no_keywords_are_refused_wherever_a_plan_has_a_schema(
    tool: str, schema: dict[str, Any], says: str
) -> None:
    assert schema_problem(schema) == "", "for JSON Schema it is one, which fits every value"
    assert says in no_keywords(schema)
    tools = {tool: spec(tool, {name: {"default": None} for name in ("outputSchema", "schema", "choices")})}
    plan = Plan.model_validate({"steps": [{"id": "a", "tool": tool, "args": {TOOLS[tool]: schema}}]})
    [problem] = problems(plan, tools, language=LANGUAGE)
    assert (problem.field, problem.severity) == (f"args.{TOOLS[tool]}", "warning"), "as a replay must reach the same"
    assert says in problem.message
    assert errors(certain([problem]))


GOOD: list[dict[str, Any]] = [
    {}, {"type": "string"}, {"x-note": "a"}, {"title": "a", "description": "b", "type": "object"},
    {"type": "object", "properties": {"bugs": {"type": "integer"}, "title": {"type": "string"}}, "required": ["bugs"]},
    {"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}, {"enum": ["a"]}, {"const": {"bugs": "integer"}},
    {"anyOf": [{"type": "string", "nullable": True}, {}]}, {"type": "string", "enumNames": ["a", "b"]},
    {"type": "object", "additionalProperties": {"type": "string"}, "examples": [{"a": "b"}]},
]  # fmt: skip


@pytest.mark.parametrize("schema", GOOD, ids=range(len(GOOD)))
def test_of_a_schema_nothing_is_said(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) == ""
    assert no_keywords(schema) == ""


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "int"}, "did you mean 'integer'?"),
        ({"properties": {"a": "str"}}, "write {type: string}"),
        ({"properties": {"a": {"type": "string", "required": True}}}, "write `required: [NAME, ...]` beside"),
    ],
)
def test_a_schema_that_is_not_valid_is_answered_with_what_to_write(schema: dict[str, Any], says: str) -> None:
    assert says in schema_problem(schema)

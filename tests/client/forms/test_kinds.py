"""Which kind of field a schema asks for: the same on a terminal and on the web page."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.forms.kinds import kind_of
from plansurvive.client.local_tools import known_tools
from plansurvive.runtime.settings import Settings

STRING, NULL = {"type": "string"}, {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "kind", "nullable"),
    [
        (STRING, "text", False),
        ({"type": "integer"}, "integer", False),
        ({"type": "number", "minimum": 0}, "number", False),
        ({"type": "boolean"}, "choice", False),
        ({"enum": ["a", 1]}, "choice", False),
        ({"const": 1}, "choice", False),
        ({"oneOf": [{"const": 1, "title": "one"}, {"const": 2}]}, "choice", False),
        ({"anyOf": [{"const": "x"}, NULL]}, "choice", True),
        ({"type": ["string", "null"]}, "text", True),
        ({"anyOf": [{"type": "integer", "maximum": 9}, NULL]}, "integer", True),
        ({"allOf": [STRING]}, "text", False),
        ({"type": "array", "items": STRING}, "list", False),
        ({"type": "array"}, "json", False),
        ({"type": "array", "prefixItems": [STRING], "items": STRING}, "json", False),
        ({"type": "object", "properties": {"a": STRING}}, "object", False),
        ({"type": "object"}, "json", False),
        ({"anyOf": [STRING, {"type": "integer"}]}, "json", False),
        ({"type": ["string", "integer"]}, "json", False),
        ({}, "json", False),
    ],
)
def test_a_schema_asks_for_a_kind_of_field(schema: dict[str, Any], kind: str, nullable: bool) -> None:
    found = kind_of(schema)
    assert (found.kind, found.nullable) == (kind, nullable)


def test_references_inside_the_schema_are_followed_and_never_in_circles() -> None:
    root = {"$defs": {"size": {"type": "integer", "maximum": 5}, "loop": {"$ref": "#/$defs/loop"}}}
    found = kind_of({"$ref": "#/$defs/size", "title": "Size"}, root)
    assert (found.kind, found.schema["maximum"], found.schema["title"]) == ("integer", 5, "Size")
    for reference in ("#/$defs/loop", "#/$defs/nothing", "https://example.org/schema", 7, "#/$defs/size/maximum"):
        assert kind_of({"$ref": reference}, root).kind == "json"


@pytest.mark.parametrize(
    "schema",
    [
        None, True, [], "string", 7, {"type": 7}, {"type": []}, {"type": {}}, {"enum": []}, {"enum": "abc"},
        {"anyOf": 7}, {"anyOf": [7]}, {"anyOf": []}, {"oneOf": [{"const": 1}, 7]}, {"items": 7, "type": "array"},
        {"type": "object", "properties": 7}, {"allOf": [{"allOf": [{"allOf": [7]}]}]},
    ],
)  # fmt: skip
def test_what_is_not_a_schema_is_a_field_for_json(schema: Any) -> None:
    assert kind_of(schema).kind == "json"


def test_every_argument_of_every_built_in_tool_has_a_kind() -> None:
    specs = known_tools(Settings.read({}))
    found = {
        f"{name}.{field}": kind_of(schema).kind
        for name, spec in specs.items()
        for field, schema in spec.args_schema["properties"].items()
    }
    assert {name for name, kind in found.items() if kind == "json"} == {
        "run_command.env", "http_request.headers", "http_request.body", "ask.schema", "ask.default",
        "agent.outputSchema", "plan.inputs", "coding_agent.schema",
    }  # fmt: skip

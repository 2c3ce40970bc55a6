"""Forms from JSON schemas: which fields there are, and that a value comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.forms.flat import flat_fields
from plansurvive.client.forms.kinds import Choice
from plansurvive.client.forms.texts import ABSENT, Unreadable
from plansurvive.client.forms.tree import Node
from plansurvive.client.local_tools import known_tools
from plansurvive.runtime.settings import Settings

SPECS = known_tools(Settings.read({}))


def field(tool: str, name: str, **args: Any) -> Node:
    return next(each for each in flat_fields(SPECS[tool].args_schema, args) if each.name == name)


def test_every_argument_of_a_tool_has_a_field_of_its_kind() -> None:
    found = {each.name: each.kind for each in flat_fields(SPECS["http_request"].args_schema, {"url": "http://x"})}
    assert found == {
        "url": "text", "method": "choice", "headers": "json", "body": "json", "timeout": "number",
    }  # fmt: skip
    assert field("run_command", "allowFailure").choices == (Choice(True), Choice(False))
    assert field("read_file", "limit").kind == "integer"


def test_an_argument_the_tool_does_not_know_and_those_of_an_unknown_tool_are_json() -> None:
    assert field("read_file", "pth", pth="x").kind == "json"
    assert [(each.name, each.kind) for each in flat_fields(None, {"a": 1})] == [("a", "json")]


@pytest.mark.parametrize(
    "value", ["", "a\nb", "$step_1", "{{x.y}}", "\x1b[2J", "\u202e", "\U000e0001", "a\r\nb", 7, None]
)
def test_what_nobody_touches_comes_back_as_it_was(value: Any) -> None:
    found = field("write_file", "content", content=value)
    assert found.read(found.text) == value
    assert not set(found.text) & set("\x1b\u202e\r\U000e0001")


@pytest.mark.parametrize(
    ("tool", "name", "text", "value"),
    [
        ("write_file", "path", "b.txt", "b.txt"),
        ("read_file", "offset", "12", 12),
        ("read_file", "offset", "", ABSENT),
        ("read_file", "offset", "$count", "$count"),
        ("http_request", "timeout", "1.5", 1.5),
        ("http_request", "headers", '{"a": "b"}', {"a": "b"}),
        ("http_request", "headers", "$headers", "$headers"),
        ("http_request", "method", '"PUT"', "PUT"),
        ("http_request", "method", "PUT", "PUT"),
        ("run_command", "allowFailure", "true", True),
        ("run_command", "allowFailure", "", ABSENT),
    ],
)
def test_what_is_typed_becomes_a_value(tool: str, name: str, text: str, value: Any) -> None:
    found = field(tool, name).read(text, references=True)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("tool", "name", "text", "reason"),
    [
        ("read_file", "offset", "1.5", "is not a whole number"),
        ("read_file", "offset", "true", "is not a whole number"),
        ("http_request", "timeout", "NaN", "is not a number"),
        ("http_request", "headers", "{a: b}", "not valid JSON: line 1, column 2: the name of a field"),
        ("http_request", "body", "Infinity", "not valid JSON"),
        ("http_request", "method", "PUSH", "is not one of the choices"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(tool: str, name: str, text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        field(tool, name).read(text, references=True)

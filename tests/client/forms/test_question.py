"""The form of a question, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.client.forms.question import Form


def entered(args: dict[str, Any], *lines: str) -> tuple[Any, list[str]]:
    """The value after these lines, and what was said about each."""
    form = Form({"question": "?", **args})
    said = [form.enter(line) for line in lines]
    return (form.value if form.is_done else None), said


def test_a_text_is_taken_as_it_is_typed_and_an_empty_line_is_no_answer() -> None:
    value, said = entered({}, "", "5")
    assert (value, said[1]) == ("5", "")
    assert "is not a text" in said[0]


@pytest.mark.parametrize(
    ("choices", "line", "value"),
    [
        (["red", "blue"], "2", "blue"),
        (["red", "blue"], "red", "red"),
        ([3, 1, 2], "1", 1),
        ([True, False], "true", True),
    ],
)
def test_a_choice_is_typed_or_named_by_its_number_unless_that_is_a_choice(
    choices: list[Any], line: str, value: Any
) -> None:
    assert entered({"choices": choices}, line) == (value, [""])


def test_an_object_is_asked_for_field_by_field_with_its_defaults() -> None:
    properties = {
        "size": {"type": "integer", "minimum": 1},
        "why": {"type": "string"},
        "how": {"type": "string", "default": "x"},
    }
    schema = {"type": "object", "properties": properties, "required": ["size"]}
    form = Form({"schema": schema, "default": {"size": 4}})
    assert form.prompt.startswith("size (whole number, required)")
    assert form.prompt.endswith("[4]: ")
    value, said = entered({"schema": schema}, "", "a", "0", "", "", "3", "", "")
    assert value == {"size": 3, "how": "x"}
    assert [bool(each) for each in said] == [True, True, False, False, True, False, False, False]
    assert "minimum" in said[4]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object", "properties": {"a": True}},
        {"properties": {"a": {"anyOf": [True]}}, "type": "object"},
    ],
)
def test_a_schema_that_is_no_list_of_fields_is_answered_as_json(schema: dict[str, Any]) -> None:
    form = Form({"schema": schema})
    assert form.prompt == "answer: "
    value: Any = [1] if schema["type"] == "array" else {}
    assert form.enter(str(value).replace("'", '"')) == ""
    assert form.value == value

"""The form of a question in the few words of elicitation, and the answer that a reply to it means."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import ElicitRequestFormParams

from plansurvive.apps.mcp.decisions.forms import ANSWER, answer_form
from plansurvive.client.forms.texts import Unreadable

PORT = {
    "type": "object",
    "properties": {
        "host": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65_535},
        "tls": {"type": "boolean", "default": True},
        "level": {"enum": [1, 2, "high"]},
    },
    "required": ["host", "port"],
}


def test_a_question_without_a_schema_asks_for_a_text() -> None:
    form = answer_form({"question": "Why?"})
    assert form.schema == {
        "type": "object", "properties": {"answer": {"type": "string", "minLength": 1, "title": "Answer"}},
        "required": ["answer"],
    }  # fmt: skip
    assert form.value({ANSWER: "because", "more": "ignored"}) == "because"
    with pytest.raises(Unreadable, match="no answer"):
        form.value({ANSWER: ""})


def test_a_flat_object_is_a_form_of_its_fields_and_the_question_itself_checks_the_answer() -> None:
    form = answer_form({"question": "Where?", "schema": PORT})
    fields = form.schema["properties"]
    assert fields["port"] == {"type": "integer", "minimum": 1, "maximum": 65_535}
    assert fields["tls"] == {"type": "boolean", "default": True}
    assert fields["level"]["oneOf"][0] == {"const": "1", "title": "1"}
    assert form.schema["required"] == ["host", "port"]
    value = form.value({"host": "a", "port": 80, "level": "2", "other": 1})
    assert value == {"host": "a", "port": 80, "level": 2}
    assert not form.misfit(value)
    assert "host" in form.misfit(form.value({"host": "A", "port": 80}))


def test_choices_that_are_no_texts_mean_what_they_are() -> None:
    form = answer_form({"question": "How many?", "choices": [1, 2, "many"]})
    assert [each["const"] for each in form.schema["properties"][ANSWER]["oneOf"]] == ["1", "2", "many"]
    assert [form.value({ANSWER: text}) for text in ("1", "many")] == [1, "many"]
    assert form.misfit("other")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"deep": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(100)}},
        {"type": "object", "properties": {"a\u202eb": {"type": "string"}}},
        {"enum": [1, "1"]},
        {"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}},
    ],
)
def test_what_elicitation_cannot_express_is_asked_for_as_json(schema: dict[str, Any]) -> None:
    form = answer_form({"question": "What?", "schema": schema})
    assert form.is_json
    assert form.schema["properties"][ANSWER]["type"] == "string"
    assert form.value({ANSWER: '["a"]'}) == ["a"]
    with pytest.raises(Unreadable):
        form.value({ANSWER: "[" * 2_000})


def test_several_of_a_list_are_chosen_by_their_texts() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}}
    form = answer_form({"question": "Which?", "schema": {"type": "object", "properties": {"ids": schema}}})
    assert form.schema["properties"]["ids"]["items"]["anyOf"][1] == {"const": "2", "title": "2"}
    assert form.value({"ids": ["2", "1"]}) == {"ids": [2, 1]}


def test_a_default_is_filled_in_and_counts_when_the_field_is_left_empty() -> None:
    form = answer_form({"question": "Go?", "default": "yes"})
    assert form.schema["properties"][ANSWER]["default"] == "yes"
    assert "required" not in form.schema
    assert form.value({}) == "yes"


_TEXTS = st.text(max_size=8)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), _TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object", ["string", "null"]]),
            "enum": st.lists(_VALUES, max_size=3), "title": _VALUES, "default": _VALUES, "minimum": _VALUES,
            "maxLength": _VALUES, "format": _VALUES, "const": _VALUES,
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["object", "array"])},
        optional={
            "properties": st.dictionaries(_TEXTS, inner, max_size=3), "required": st.lists(_TEXTS, max_size=3),
            "items": inner, "uniqueItems": st.booleans(), "anyOf": st.lists(inner, max_size=2),
        },
    ),
    max_leaves=5,
)  # fmt: skip


@given(schema=_SCHEMAS, default=_VALUES, content=st.dictionaries(_TEXTS | st.just(ANSWER), _VALUES, max_size=3))
def test_whatever_the_schema_and_the_reply_are_the_form_is_flat_and_nothing_is_raised(
    schema: dict[str, Any], default: Any, content: dict[str, Any]
) -> None:
    form = answer_form({"question": "?", "schema": schema, "default": default})
    for drawn in form.schema["properties"].values():
        assert drawn["type"] in ("string", "integer", "number", "boolean", "array")
        assert not {"properties", "$ref", "anyOf", "allOf"} & drawn.keys()
    ElicitRequestFormParams(message="?", requested_schema=form.schema)
    with suppress(Unreadable):
        form.misfit(form.value(content))


def test_titles_and_descriptions_cannot_hide_anything() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "title": "x\u202ey", "description": "z" * 9_000}},
    }
    field = answer_form({"question": "?", "schema": schema}).schema["properties"]["a"]
    assert field["title"] == "x\\u{202e}y"
    assert len(field["description"]) == 500

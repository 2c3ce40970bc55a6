"""Forms of the web page: what is drawn for a schema, and the value of what was posted."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from plansurvive.apps.web.common.rendering import environment
from plansurvive.client.forms.schema_form import MORE, Field, Read, SchemaForm, schema_of_inputs
from plansurvive.client.forms.texts import ABSENT
from plansurvive.client.local_tools import known_tools
from plansurvive.plans.model.rules import Input
from plansurvive.runtime.settings import Settings

DEPLOY = {
    "type": "object",
    "properties": {
        "host": {"type": "string", "minLength": 1, "description": "Where to."},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535, "default": 443},
        "ratio": {"type": "number"},
        "dry": {"type": "boolean"},
        "mode": {"enum": ["fast", "safe"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "owner": {
            "type": "object",
            "properties": {"mail": {"type": "string", "format": "email"}},
            "required": ["mail"],
        },
        "extra": {},
    },
    "required": ["host", "mode"],
    "additionalProperties": False,
    "$defs": {
        "person": {
            "type": "object", "properties": {"mail": {"type": "string", "format": "email"}}, "required": ["mail"]
        }
    },
}  # fmt: skip


def every(field: Field) -> list[Field]:
    return [field, *(inner for each in field.fields for inner in every(each))]


def named(field: Field, name: str) -> Field:
    return next(each for each in every(field) if each.name == name)


def browser(field: Field, **typed: Any) -> list[tuple[str, str]]:
    """What a browser sends of a form as it was drawn; `typed` by the last part of a field's name."""
    sent: list[tuple[str, str]] = []
    for each in every(field):
        given = typed.get(each.name.partition(".")[2], typed.get(each.name))
        if each.control in ("object", "list"):
            continue
        if each.control in ("radio", "select", "checks"):
            chosen = [option.value for option in each.options if option.chosen] if given is None else given
            sent += [(each.name, value) for value in ([chosen] if isinstance(chosen, str) else chosen)]
        else:
            text = each.text if given is None else str(given)
            sent.append((each.name, text.replace("\r\n", "\n").replace("\n", "\r\n")))
    return sent


def post(form: SchemaForm, **typed: Any) -> Read:
    return form.read(browser(form.field, **{name.replace("_", "."): value for name, value in typed.items()}))


def test_each_kind_of_schema_has_its_control() -> None:
    found = {each.name: each.control for each in every(SchemaForm(DEPLOY).field)}
    assert found == {
        "f": "object", "f.host": "text", "f.port": "text", "f.ratio": "text", "f.dry": "radio", "f.mode": "radio",
        "f.tags": "list", "f.tags.0": "text", "f.owner": "object", "f.owner.mail": "text", "f.extra": "json",
    }  # fmt: skip
    port, mail = (named(SchemaForm(DEPLOY).field, name) for name in ("f.port", "f.owner.mail"))
    assert (port.text, port.input_mode, port.hint) == ("443", "numeric", "a whole number, at least 1, at most 65535")
    assert mail.input_mode == "email"
    assert named(SchemaForm(DEPLOY, fill=False).field, "f.port").hint.endswith("443 if left empty")


def test_what_is_typed_becomes_the_value() -> None:
    found = post(
        SchemaForm(DEPLOY), host="a.example", dry="true", mode='"safe"', tags_0="x", owner_mail="a@b.c", ratio="1.5"
    )
    assert found.is_valid
    assert found.value == {
        "host": "a.example", "port": 443, "ratio": 1.5, "dry": True, "mode": "safe", "tags": ["x"],
        "owner": {"mail": "a@b.c"},
    }  # fmt: skip


def test_errors_stand_at_their_fields_and_what_was_typed_is_kept() -> None:
    found = post(SchemaForm(DEPLOY), port="99999", ratio="1,5", extra="{a", tags_0="x")
    assert not found.is_valid
    assert {each.name: each.error for each in every(found.field) if each.error} == {
        "f.host": "is needed",
        "f.port": "must be 65535 or less",
        "f.ratio": "'1,5' is not a number",
        "f.mode": "is needed",
        "f.extra": "not valid JSON: line 1, column 2: the name of a field is written in double quotes",
    }
    assert {name: named(found.field, name).text for name in ("f.port", "f.ratio", "f.extra", "f.tags.0")} == {
        "f.port": "99999", "f.ratio": "1,5", "f.extra": "{a", "f.tags.0": "x",
    }  # fmt: skip


def test_a_half_filled_object_says_what_it_needs_and_an_empty_one_is_not_given() -> None:
    schema = {"properties": {"box": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                                     "required": ["b"]}}, "type": "object"}  # fmt: skip
    assert post(SchemaForm(schema)).value == {}
    half = post(SchemaForm(schema), box_a="x")
    assert half.errors == {"f.box.b": "is needed"}


def test_a_row_of_a_list_is_asked_for_with_a_button_and_empty_rows_do_not_count() -> None:
    form = SchemaForm(DEPLOY, {"host": "h", "mode": "fast", "tags": ["x"]})
    sent = [*browser(form.field), (MORE, "f.tags")]
    again = form.read(sent)
    assert not again.is_valid
    assert not again.errors.keys() - {"f"}
    assert [each.text for each in named(again.field, "f.tags").fields] == ["x", ""]
    assert form.read([*sent[:-1], ("f.tags.1", ""), ("f.tags.2", "z")]).value["tags"] == ["x", "z"]
    too_many = form.read([*sent[:-1], *((f"f.tags.{row}", "z") for row in range(1, 5))])
    assert too_many.errors == {"f.tags": "must have 3 items or fewer"}


def test_the_error_of_an_item_stands_at_its_row_when_rows_before_it_are_empty() -> None:
    form = SchemaForm({"type": "array", "items": {"type": "string", "maxLength": 2}})
    found = form.read([("f.0", ""), ("f.1", "ok"), ("f.2", "long")])
    assert found.errors == {"f.2": "must have 2 characters or fewer"}


def test_any_number_of_choices_is_ticked() -> None:
    form = SchemaForm({"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "c"]}}, ["c"])
    assert form.field.control == "checks"
    assert post(form).value == ["c"]
    assert form.read([("f", '"a"'), ("f", '"b"')]).value == ["a", "b"]
    assert form.read([]).value == []
    assert form.read([("f", '"x"')]).errors == {"f": "one of the values is not one of the choices"}


def test_a_choice_shows_its_value_and_what_its_author_calls_it() -> None:
    schema = {"oneOf": [{"const": "eu-1", "title": "Frankfurt"}, {"const": 2}, {"const": "a\u200bb"}]}
    assert [each.label for each in SchemaForm(schema).field.options] == ["Frankfurt (eu-1)", "2", "a\\u{200b}b"]
    assert SchemaForm({"enum": list(range(20))}).field.control == "select"


def test_a_choice_that_is_not_one_is_refused() -> None:
    found = SchemaForm({"enum": [1, True, "1"]}).read([("f", "2")])
    assert found.errors == {"f": "'2' is not one of the choices"}
    assert [SchemaForm({"enum": [1, True, "1"]}).read([("f", text)]).value for text in ("1", "true", '"1"')] == [
        1,
        True,
        "1",
    ]


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "a\nb", "\n\nb\n", "a\r\nb", "\x1b[2J", "a\u202eb", "$step", "{{x}}", None, 7, 1.0, [], ["", "a"], {},
        {"a": 1}, [[1], [2]], ["x"] * 60, True, {"host": None}, 2**70,
    ],
)  # fmt: skip
@pytest.mark.parametrize("fill", [True, False])
def test_what_nobody_touches_comes_back_as_it_was(value: Any, fill: bool) -> None:
    schemas: list[dict[str, Any]] = [
        {}, {"type": "string"}, {"type": ["integer", "null"]}, {"type": "array", "items": {"type": "string"}},
        {"enum": ["", 7, None]}, {"type": "object", "properties": {"a": {"type": "integer"}}},
    ]  # fmt: skip
    for schema in schemas:
        for whole, given in ((schema, value), ({"type": "object", "properties": {"x": schema}}, {"x": value})):
            form = SchemaForm(whole, given, fill=fill)
            found = form.read(browser(form.field)).value
            assert json.dumps(found) == json.dumps(given), (schema, form.field)


def test_every_built_in_tool_has_a_form_that_gives_its_arguments_back() -> None:
    given: dict[str, dict[str, Any]] = {
        "write_file": {"path": "a", "content": "x\ny"},
        "run_command": {"command": "ls", "env": {"A": "1"}},
        "merge_worktrees": {"steps": ["a", "b"]},
        "revert_merge": {"commits": ["a", "b"]},
    }
    for name, spec in known_tools(Settings.read({})).items():
        form = SchemaForm(spec.args_schema, given.get(name, {}), fill=False)
        assert form.read(browser(form.field)).value == given.get(name, {}), name


def test_an_argument_that_the_schema_does_not_know_is_shown_and_kept() -> None:
    form = SchemaForm(DEPLOY, {"host": "h", "mode": "fast", "hots": "typo"})
    assert named(form.field, "f.hots").control == "json"
    assert post(form).errors == {"f": "'hots' is not expected here"}
    assert post(form, hots="").value == {"host": "h", "mode": "fast", "port": 443}


def test_references_stand_for_any_value_only_where_they_may() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "list": {"type": "array"}}}
    drafted = SchemaForm(schema, references=True).read([("f.n", "$count"), ("f.list", "$all")])
    assert (drafted.is_valid, drafted.value) == (True, {"n": "$count", "list": "$all"})
    assert SchemaForm(schema).read([("f.n", "$count"), ("f.list", "$all")]).errors.keys() == {"f.n", "f.list"}


def test_names_of_fields_are_safe_however_the_schema_names_them() -> None:
    names = ['"><script>', "a b", "a.b", "", "ü", "x" * 500, "\u202e", "ok"]
    form = SchemaForm({"type": "object", "properties": {name: {"type": "string"} for name in names}})
    found = [each.name for each in form.field.fields]
    assert all(re.fullmatch(r"f\.[A-Za-z0-9_~-]{1,60}", name) for name in found)
    assert len(set(found)) == len(names)
    assert form.read([(name, "v") for name in found]).value == dict.fromkeys(names, "v")


def test_hidden_characters_are_shown_in_labels_and_descriptions() -> None:
    part = {"type": "string", "description": "a\u202eb\x1b", "title": "x\u202ey"}
    field = SchemaForm({"type": "object", "properties": {"a": part}}).field.fields[0]
    assert (field.label, field.help) == ("x\\u202ey", "a\\u202eb\\u001b")


def test_the_size_of_a_form_is_limited() -> None:
    wide = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(1_000)}}
    found = every(SchemaForm({"type": "object", "properties": {"a": wide, "b": wide}}).field)
    assert sum(each.control == "text" for each in found) < 200
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(50):
        deep = {"type": "object", "properties": {"x": deep}}
    assert len(every(SchemaForm(deep).field)) == 5
    endless = {"$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}}, "$ref": "#/$defs/n"}
    assert len(every(SchemaForm(endless).field)) == 5
    rows = SchemaForm({"type": "array", "items": {"type": "string"}}).read([("f.999", "x"), ("f.99999999", "y")])
    assert len(rows.field.fields) == 50


@pytest.mark.parametrize("text", ["[" * 5_000, "1e999", "NaN", '"\\ud800"', "9" * 6_000])
def test_hostile_texts_are_refused_at_the_field(text: str) -> None:
    for schema in ({}, {"type": "number"}):
        assert SchemaForm(schema).read([("f", text)]).errors.keys() == {"f"}


def test_a_required_value_that_is_missing_is_said() -> None:
    assert SchemaForm({"type": "string", "minLength": 1}).read([("f", "")]).errors == {"f": "is needed"}
    assert SchemaForm({"enum": ["a"]}).read([]).errors == {"f": "is needed"}
    assert SchemaForm({"type": ["string", "null"]}).read([("f", "")]).value is None
    assert SchemaForm({"type": "string"}).read([("other", "x")]).value is ABSENT


def test_inputs_of_a_plan_become_a_schema() -> None:
    inputs = {
        "name": Input(description="Whom to greet."),
        "count": Input(type="integer", default=2),
        "list": Input(type="array"),
    }
    form = SchemaForm(schema_of_inputs(inputs))
    assert [(each.name, each.control, each.required, each.text) for each in form.field.fields] == [
        ("f.name", "area", True, ""), ("f.count", "text", False, "2"), ("f.list", "list", True, ""),
    ]  # fmt: skip
    assert post(form, name="Ann", list_0="1").value == {"name": "Ann", "count": 2, "list": [1]}


def drawn(field: Field) -> str:
    page = environment().from_string('{% from "_schema_fields.html" import schema_field %}{{ schema_field(field) }}')
    return page.render(field=field)


class Inputs(HTMLParser):
    """The controls of a page by name, and the texts that describe them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.ids: list[str] = []
        self.described: list[str] = []
        self.labelled: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.names += [found["name"] or ""] if "name" in found else []
        self.ids += [found["id"] or ""] if "id" in found else []
        self.described += (found.get("aria-describedby") or "").split()
        self.labelled += [found.get("for") or ""] if tag == "label" and "for" in found else []


def test_the_page_draws_every_field_with_its_label_and_its_errors() -> None:
    form = SchemaForm(DEPLOY, {"host": "</textarea><script>x</script>", "extra": ["</textarea>"], "mode": "fast"})
    html = drawn(form.read([*browser(form.field), ("f.port", "x")]).field)
    found = Inputs(html)
    assert "script" not in found.tags
    assert {"f.host", "f.port", "f.dry", "f.mode", "f.tags.0", "f.owner.mail", "f.extra", MORE} <= set(found.names)
    assert set(found.described) <= set(found.ids)
    assert set(found.labelled) <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert "f.port-error" in found.described
    assert " style=" not in html


def test_a_text_area_keeps_a_line_break_at_the_beginning() -> None:
    assert ">\n\n\nx</textarea>" in drawn(SchemaForm({"type": "string"}, "\n\nx").field)

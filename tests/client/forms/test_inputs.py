"""The form of a plan's inputs: lists and objects have fields, or are one JSON text; errors keep what was typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.client.forms.inputs import Filled, filled
from plansurvive.client.forms.schema_form import MORE
from plansurvive.client.forms.shapes import shape_of
from plansurvive.plans.model import Input
from tests.apps.web.start.test_start import begun
from tests.apps.web.visiting import Visitor
from tests.apps.web.visiting import visitor as visitor
from tests.kit.driving import terminated

DEPLOY = """\
title: Deploy
inputs:
  regions: {type: array, default: [north, south]}
  more: {type: array}
  owner: {type: object, default: {mail: ann@example.org, page: true, level: 3}}
  labels: {type: object, default: {}}
steps:
  - {id: look, tool: list_directory, args: {path: "."}}
"""
INPUTS = {
    "name": Input(),
    "loud": Input(type="boolean", default=True),
    "regions": Input(type="array", default=["north", "south"]),
    "more": Input(type="array", default=[]),
    "owner": Input(type="object", default={"mail": "ann@example.org", "page": True}),
    "labels": Input(type="object", default={}),
}


def errors(found: Filled) -> dict[str, str]:
    return {each.field or "": each.message for each in found.problems}


def test_lists_and_objects_get_fields_and_a_choice_of_json_where_there_are_fields() -> None:
    found = {each.field.label: (each.field.control, each.json) for each in filled(INPUTS, ()).fields}
    assert found == {
        "name": ("area", None), "loud": ("radio", None), "regions": ("list", ""), "more": ("list", ""),
        "owner": ("object", ""), "labels": ("json", None),
    }  # fmt: skip


def test_what_is_typed_into_the_fields_of_a_list_or_object_is_its_value() -> None:
    sent = [
        ("input.name", ""), ("input.loud", "false"), ("input.regions.0", "west"), ("input.regions.1", ""),
        ("input.more.0", "a text"), ("input.more.1", "3"), ("input.more.2", '{"a": [1]}'), ("input.more.3", '"3"'),
        ("input.owner.mail", "bob@example.org"), ("input.owner.page", "false"), ("input.labels", '{"x": 1}'),
    ]  # fmt: skip
    found = filled(INPUTS, sent)
    assert not found.problems
    assert found.values == {
        "name": "", "loud": False, "regions": ["west"], "more": ["a text", 3, {"a": [1]}, "3"],
        "owner": {"mail": "bob@example.org", "page": False}, "labels": {"x": 1},
    }  # fmt: skip


def test_a_json_text_counts_instead_of_the_fields_and_their_errors() -> None:
    owner = '{"mail": "x", "team": [1, 2]}'
    sent = [("input.owner", owner), ("input.regions", '["a", 2]'), ("input.more.0", "[broken")]
    found = filled(INPUTS, sent)
    assert found.values["owner"] == {"mail": "x", "team": [1, 2]}
    assert found.values["regions"] == ["a", 2]
    assert list(errors(found)) == ["inputs.more.0"]
    assert filled(INPUTS, [*sent, ("input.more", "[1]")]).problems == []


@pytest.mark.parametrize(
    ("name", "text", "place", "why"),
    [
        ("input.regions", '{"a": 1}', "inputs.regions", "must be a list"),
        ("input.owner", "[1]", "inputs.owner", "must be an object"),
        ("input.labels", "[1]", "inputs.labels", "must be an object"),
        ("input.owner", "{", "inputs.owner", "not valid JSON"),
        ("input.more.0", "[" * 5_000, "inputs.more.0", "not valid JSON"),
        ("input.loud", "maybe", "inputs.loud", "not one of the choices"),
    ],
)
def test_what_is_no_value_is_told_at_its_field(name: str, text: str, place: str, why: str) -> None:
    found = filled(INPUTS, [(name, text)])
    assert why in errors(found)[place]


def test_another_row_is_asked_for_with_a_button_and_tells_no_errors_yet() -> None:
    found = filled(INPUTS, [("input.regions.0", "west"), ("input.labels", "{"), (MORE, "input.regions")])
    [regions] = [each.field for each in found.fields if each.field.label == "regions"]
    assert (found.is_complete, found.problems) == (False, [])
    assert [each.text for each in regions.fields] == ["west", "south", ""]


@pytest.mark.parametrize(
    ("example", "items"),
    [
        (["a"], {"type": "string"}),
        ([1, 2.5], {"type": "number"}),
        ([1, "a"], {}),
        ([], {}),
        ([{"a": 1}, {"b": 2}], {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}),
        ([{"a": 1}, {"a": "x"}], {"type": "object", "properties": {"a": {}}}),
    ],
)  # fmt: skip
def test_a_default_shows_what_is_in_a_list(example: list[Any], items: dict[str, Any]) -> None:
    assert shape_of(example) == {"type": "array", "items": items}


async def test_a_plan_is_started_with_lists_and_objects_from_fields(
    visitor: Visitor, worker: Worker, workspace: Path
) -> None:
    (workspace / "deploy.yaml").write_text(DEPLOY)
    page = await visitor.get("/start/plan?file=deploy.yaml")
    for text in ('name="input.regions.1" type="text" value="south"', 'name="input.owner.mail"', "as JSON instead"):
        assert text in page
    fields = {
        "file": "deploy.yaml", "do": "start", "input.regions.0": "west", "input.regions.1": "south",
        "input.more.0": "x y", "input.owner.mail": "bob", "input.owner.page": "false", "input.owner.level": "high",
        "input.labels": "{}",
    }  # fmt: skip
    wider = await visitor.post("/start/plan", {**fields, MORE: "input.regions"}, 200)
    assert 'name="input.regions.2"' in wider
    wrong = await visitor.post("/start/plan", fields, 422)
    assert "BAD_INPUT" in wrong
    assert 'id="input.owner.level-error"' in wrong
    assert 'value="high"' in wrong
    assert 'value="west"' in wrong
    name = await begun(visitor, "/start/plan", {**fields, "input.owner.level": "4", "review": "1"})
    assert (await visitor.in_review(name)).inputs == {
        "regions": ["west", "south"], "more": ["x y"], "owner": {"mail": "bob", "page": False, "level": 4},
        "labels": {},
    }  # fmt: skip
    await terminated(visitor.client, f"plan-{name}")

"""Each field of a step says in the model where it counts; the lists made from that are what they were by hand."""

from __future__ import annotations

import json
from typing import Annotated

import pytest

from plansurvive.features.planning.prompts import planning_system
from plansurvive.plans.change_log import differences
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.llm.schemas import plan_schema
from plansurvive.plans.model import Plan, Step, ToolSpec, Value
from plansurvive.plans.model.step_fields import Asked, Llm, Offered, On, Use, aliases, asked, names, offered, use_of

BY_HAND = {
    On.EDIT: {
        *("tool", "args", "description", "dependsOn", "critical", "requiresApproval", "approval", "retry"),
        *("repeatable", "timeout", "when", "queue", "notes", "onFailure"),
    },
    On.RERUN: {"args", "description", "timeout", "retry", "when", "notes", "requiresApproval"},
    On.APPROVAL: {"tool", "args", "requiresApproval", "queue"},
    On.FORM: {"tool", "args", "description", "dependsOn", "requiresApproval"},
    On.DETAILS: {"when", "onFailure", "retry", "timeout", "queue", "notes"},
    Asked: {"id", "tool", "args", "description", "dependsOn", "requiresApproval", "critical"},
    Llm.NEVER: {"approval", "queue"},
    Llm.MAY: {"order", "retry", "repeatable", "timeout", "onFailure", "notes"},
    Offered: {"when"},
}
"""The lists before they were derived. A field that came later is in none of them, and need not be added."""
WHEN_DERIVED = set().union(*BY_HAND.values())


class Unmarked(Value):
    """A field without a marker, one with a marker, one with two."""

    plain: int = 0
    marked: Annotated[int, Use(On.EDIT, Llm.MAY)] = 0
    twice: Annotated[int, Use(On.EDIT, Llm.MAY), Use(On.NOTHING, Llm.MAY)] = 0


@pytest.mark.parametrize("name", Step.model_fields)
def test_every_field_of_a_step_says_where_it_counts(name: str) -> None:
    assert isinstance(use_of(Step, name), Use)


@pytest.mark.parametrize("name", ["plain", "twice"])
def test_a_field_without_one_marker_is_an_error(name: str) -> None:
    assert use_of(Unmarked, "marked").on is On.EDIT
    with pytest.raises(TypeError, match=f"field '{name}' of Unmarked needs one marker"):
        use_of(Unmarked, name)
    with pytest.raises(TypeError):
        names(Unmarked, On.EDIT)


@pytest.mark.parametrize("chosen", BY_HAND, ids=str)
def test_the_derived_lists_are_those_that_were_kept_by_hand(chosen: On | Llm | type[Asked] | type[Offered]) -> None:
    assert set(aliases(Step, chosen)) & WHEN_DERIVED == BY_HAND[chosen]


def test_the_llm_is_asked_for_the_fields_in_their_places_by_schema_and_prompt() -> None:
    spec = ToolSpec(name="t", description="", args_schema={"type": "object", "properties": {}})
    step = plan_schema([spec])["properties"]["steps"]["items"]["anyOf"][0]
    used_by_calls = [name for name, field in offered(Step).items() if not field.of_blocks]
    assert list(step["properties"]) == [*asked(Step), *used_by_calls] == step["required"]
    block = plan_schema([spec])["properties"]["steps"]["items"]["anyOf"][-1]
    assert set(block["properties"]) == {*asked(Step), *offered(Step)} - {"tool", "args"} == set(block["required"])
    assert [field.place for field in asked(Step).values()] == list(range(1, len(asked(Step)) + 1))
    shown = planning_system([]).partition('"steps": [')[2].partition("    },")[0]
    places = [shown.index(f'"{name}": {field.example}') for name, field in asked(Step).items()]
    assert places == sorted(places)


def test_the_markers_are_not_in_the_published_schema() -> None:
    text = json.dumps(Plan.model_json_schema())
    assert [word for word in ("On.", "Asked", "Use(", "Llm.") if word in text] == []
    assert Plan.model_json_schema()["$defs"]["Step"]["properties"]["tool"] == {
        "description": "The tool to call; `plan tools` lists them. A step has a tool, or `steps`, or `switch`.",
        "maxLength": 200,
        "minLength": 1,
        "title": "Tool",
        "type": "string",
    }


def test_a_change_of_any_editable_field_is_in_the_change_log() -> None:
    old = Step(id="a", tool="t", args={"x": 1})
    new = Step.model_validate({
        "id": "a", "tool": "u", "args": {"x": 2}, "description": "d", "dependsOn": ["b"], "critical": True,
        "requiresApproval": True, "approval": {"timeout": 1}, "retry": {"attempts": 1}, "repeatable": False,
        "timeout": 1, "when": "x", "queue": "q", "notes": "n", "onFailure": "stop", "order": 7,
    })  # fmt: skip
    told = {row.partition(":")[0] for row in differences(Plan(steps=[old]), Plan(steps=[new]))}
    assert told == {f"~ a.{'args.x' if name == 'args' else name}" for name in BY_HAND[On.EDIT]}


def test_a_misspelt_field_is_compared_with_the_fields_of_its_own_object() -> None:
    step = {"id": "a", "tool": "t", "retry": {"atempts": 2}, "approval": {"timeuot": 1}, "onFalure": "stop"}
    found = read_plan({"budget": {"tokns": 3}, "defaults": {"critcal": True}, "steps": [step]})
    assert isinstance(found, list)
    meant = [problem.message.partition("did you mean ")[2] for problem in found]
    assert sorted(meant) == ["'attempts'?", "'critical'?", "'onFailure'?", "'timeout'?", "'tokens'?"]

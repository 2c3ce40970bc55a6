"""A field of ours that stands in the wrong object, or has its parts joined in another way, is named with its place."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plansurvive.plans.definition.arguments import argument_problems
from plansurvive.plans.definition.foreign_names import VALUES, value_meant
from plansurvive.plans.definition.own_fields import INNER, MODELS, names_of
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import Plan, Problem, Step
from tests.plans.building import spec

CALL = {"id": "a", "tool": "sleep", "args": {"seconds": 1}}
PLACES: dict[str, dict[str, Any]] = {
    "": {}, "steps": {}, "forEach": {"items": [1]}, "retry": {}, "approval": {}, "repeat": {"until": "`true`"},
    "budget": {}, "defaults": {}, "undo": {"tool": "sleep", "args": {"seconds": 1}}, "notify": {"to": "x"},
}  # fmt: skip
"""Objects of a plan file with what each needs."""
OURS = sorted({name for names in INNER.values() for name in names} | {*names_of(Plan), *names_of(Step)})


def joined(name: str, mark: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", mark, name).lower()


def said_of(place: str, name: str) -> list[Problem]:
    """The problems of a field in an object of a plan; a value of another type is one as well."""
    given = PLACES[place] | {name: object}
    if not place:
        found = read_plan({"steps": [CALL], name: object})
    elif place == "steps":
        found = read_plan({"steps": [CALL | {name: object}]})
    elif place in names_of(Plan):
        found = read_plan({"steps": [CALL], place: given})
    else:
        found = read_plan({"steps": [CALL | {place: given}]})
    return found if isinstance(found, list) else []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mark", ["-", "_", ""])
def test_a_field_is_named_with_its_place_wherever_it_stands(place: str, mark: str) -> None:
    known = names_of(MODELS[place])
    for name in OURS:
        written = joined(name, mark)
        if written in known or (mark == "_" and name in known) or (mark == "" and name != written):
            continue
        texts = [each.message for each in said_of(place, written) if "there is no field" in each.message]
        texts += [each.message for each in said_of(place, written) if "is a field of" in each.message]
        assert texts, (place, written)
        assert not any("known:" in text for text in texts), texts


WRONG = [
    (
        "steps",
        "max-parallel",
        "'maxParallel' is a field of `forEach`, and not of the step: `forEach: {..., maxParallel:",
    ),
    ("steps", "for-each", "there is no field 'for-each'; did you mean 'forEach'?"),
    ("steps", "not_author", "'notAuthor' is a field of `approval`"),
    ("steps", "roll_back", "'rollback' is a field of the plan, and not of steps: write it beside `steps`"),
    ("steps", "warn_at", "'warnAt' is a field of `budget`, which the plan has: `budget: {..., warnAt: ...}`"),
    ("steps", "max_attempts", "it is called `attempts` here: `retry: {attempts: ...}`"),
    ("steps", "deadline", "did you mean 'timeout'?"),
    ("", "requires_approval", "'requiresApproval' is a field of steps, and not of the plan"),
    ("forEach", "requires-approval", "'requiresApproval' is a field of steps, and not of `forEach`: write it beside"),
    ("defaults", "max_parallel", "'maxParallel' is a field of the plan, and not of `defaults`"),
    (
        "defaults",
        "requires_approval",
        "'requiresApproval' is a field of steps, and not of `defaults`: write it in each",
    ),
    ("retry", "limit", "did you mean 'attempts'?"),
    ("retry", "backoff", "did you mean 'factor'?"),
    ("repeat", "max_attempts", "did you mean 'limit'?"),
    ("undo", "when", "`undo: {steps: [{id: ..., when: ...}]}`"),
]


@pytest.mark.parametrize(("place", "name", "says"), WRONG)
def test_what_is_said_of_a_field_in_the_wrong_object(place: str, name: str, says: str) -> None:
    assert [says in each.message for each in said_of(place, name)] == [True]


def test_a_field_of_steps_among_arguments_is_named_as_one() -> None:
    [(field, text)] = argument_problems(spec("t", {}), {"requires-approval": False})
    assert (field, "'requiresApproval' is a field of the step: write it beside `args`" in text) == (
        "args.requires-approval", True
    )  # fmt: skip


MEANT = [
    ("onFailure", "continue", "`catch` continues with other steps"), ("onFailure", "ignore", "allowFailure: true"),
    ("onFailure", "retry", "`retry: {attempts: 3}`"), ("onFailure", "abort", "did you mean 'stop'?"),
    ("onFailure", "fail-fast", "did you mean 'stop'?"), ("onFailure", "Block", "did you mean 'block'?"),
    ("onFailure", "ask-llm", "did you mean 'ask_llm'?"), ("onFailure", "rollback", "`rollback: true` of the plan"),
    ("onFailure", "escalate", "the tool `ask`"), ("onFailure", "blok", "did you mean 'block'?"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "says"), MEANT)
@pytest.mark.parametrize("place", ["steps", "defaults"])
def test_a_value_of_another_program_is_answered_with_what_to_write(
    field: str, value: str, says: str, place: str
) -> None:
    step = CALL | ({field: value} if place == "steps" else {})
    found = read_plan({"steps": [step], "defaults": {field: value} if place == "defaults" else {}})
    assert isinstance(found, list)
    [problem] = found
    assert f"should be 'block', 'ask_llm' or 'stop'; it is '{value}'; " in problem.message
    assert says in problem.message


@pytest.mark.parametrize(
    ("field", "value", "allowed", "meant"),
    [
        ("onTimeout", "reject", ["deny", "approve", "fail"], "deny"),
        ("onTimeout", "allow", ["deny", "approve", "fail"], "approve"),
        ("onTimeout", "reject", ["default", "fail", "skip"], "fail"),
        ("onTimeout", "continue", ["default", "fail", "skip"], "default"),
        ("type", "int", ["string", "integer"], "integer"),
        ("on", "success", ["completed", "failed"], "completed"),
        ("method", "get", ["GET", "POST"], "GET"),
        ("method", "x", ["GET", "POST"], ""),
        ("method", 5, ["GET", "POST"], ""),
    ],
)
def test_which_value_is_meant(field: str, value: object, allowed: list[str], meant: str) -> None:
    assert value_meant(field, value, allowed) == (f"; did you mean '{meant}'?" if meant else "")


def test_each_value_stands_for_one_that_there_is() -> None:
    allowed = {
        "onFailure": {"block", "ask_llm", "stop"}, "onTimeout": {"deny", "approve", "fail", "default", "skip"},
        "mode": {"steps", "plans"}, "keep": {"last", "all"},
        "type": {"string", "integer", "number", "boolean", "array", "object"},
        "on": {"awaiting", "budget", "failed", "partial", "completed", "cancelled"},
    }  # fmt: skip
    assert allowed.keys() == VALUES.keys()
    for field, foreign in VALUES.items():
        assert {each for names in foreign.names.values() for each in names.split()} <= allowed[field]

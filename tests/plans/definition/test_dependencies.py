"""What a step waits for: what it uses, and what everything inside it uses from outside."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import walk
from plansurvive.plans.model import Plan, Step


def step(name: str = "work", **fields: Any) -> Step:
    """A step; without a body of its own it reads a file."""
    call = {} if "steps" in fields or "switch" in fields else {"tool": "read_file"}
    return Step.model_validate({"id": name, **call, **fields})


def call(name: str, path: str = "x", **fields: Any) -> dict[str, Any]:
    """The data of a step that reads a file."""
    return {"id": name, "tool": "read_file", "args": {"path": path}, **fields}


CASES: dict[str, tuple[Step, dict[str, bool]]] = {
    "a call": (step(args={"path": "$a"}, when="b.ok", dependsOn=["c"]), {"c": False, "a": True, "b": True}),
    "a reference makes dependsOn a use of the value": (step(args={"path": "$a"}, dependsOn=["a"]), {"a": True}),
    "the list of a loop as an expression": (step(forEach="find.files[?size > `0`]"), {"find": True}),
    "the list of a loop as a reference": (step(forEach="$my-find.files[0] || other"), {"my-find": True}),
    "the list of a loop as an insertion": (step(forEach="{{ find.files }}"), {"find": True}),
    "a list that is written out": (step(forEach=["a.txt", "$b", {"c": "{{d.x}}"}]), {"b": True, "d": True}),
    "variables of a loop": (
        step(forEach="$find", args={"path": "{{item.a}}{{index}}{{key}}{{b}}"}),
        {"find": True, "b": True},
    ),
    "a variable of a loop by another name": (
        step(forEach={"items": "$find", "as": "file"}, args={"path": "{{file}}{{item}}"}),
        {"find": True, "item": True},
    ),
    "a condition on the item": (step(forEach="$find", when="item.size > `0` && on"), {"find": True, "on": True}),
    "the round of a repetition": (
        step(repeat={"until": "status == 'done'"}, args={"path": "{{round}}{{a}}"}),
        {"a": True},
    ),
    "a round where nothing repeats": (step(args={"path": "{{round}}"}), {"round": True}),
    "a block": (
        step(steps=[call("x", "$a"), call("y", "{{x}}{{b}}"), call("z", dependsOn=["y"], when="c")]),
        {"a": True, "b": True, "c": True},
    ),
    "an inner step hides an outer one": (step(steps=[call("a"), call("y", "$a")]), {}),
    "blocks in blocks": (
        step(steps=[{"id": "in", "steps": [call("deep", "{{near}}{{far}}{{in2}}")]}, call("near"), call("in2")]),
        {"far": True},
    ),
    "a loop over an outer item": (
        step(
            forEach="$rows",
            steps=[{"id": "in", "forEach": "item.cells", "steps": [call("cell", "{{item}}{{index}}{{x}}")]}],
        ),
        {"rows": True, "x": True},
    ),
    "the output of a block": (step(steps=[call("x", "$a")], output="{x: x, y: y}"), {"a": True}),
    "a switch": (
        step(switch=[{"when": "a == 'x'", "steps": [call("x", "$b")]}, {"steps": [call("y", "$c")]}]),
        {"a": True, "b": True, "c": True},
    ),
    "a case does not see the steps of another one": (
        step(switch=[{"when": "a", "steps": [call("x")]}, {"steps": [call("y", "$x")]}]),
        {"a": True, "x": True},
    ),
    "catch": (
        step(catch=[{"codes": ["EXISTS"], "steps": [call("x", "{{error.code}}{{a}}"), call("y", "$x")]}]),
        {"a": True},
    ),
    "finally": (
        step(steps=[call("made")], finally_=[call("x", "{{status}}{{made}}{{a}}")]),
        {"a": True},
    ),
    "an undo that calls a tool": (step(undo={"tool": "note", "args": {"text": "{{value.id}}{{a}}"}}), {"a": True}),
    "an undo of steps": (step(undo={"steps": [call("x", "{{value}}{{a}}")]}), {"a": True}),
    "an undo in a loop": (
        step(forEach="$f", undo={"tool": "note", "args": {"text": "{{item}}"}}),
        {"f": True},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_step_waits_for_what_it_and_the_steps_inside_use_from_outside(name: str) -> None:
    written, expected = CASES[name]
    assert dependencies(written) == expected


def test_every_step_of_a_plan_has_a_path() -> None:
    plan = Plan.model_validate(
        {
            "steps": [
                {
                    "id": "resize",
                    "steps": [call("thumb"), {"id": "in", "switch": [{"steps": [call("a")]}, {"steps": [call("b")]}]}],
                    "catch": [{"steps": [call("notify")]}],
                    "finally": [call("clean")],
                },
                call("pay", undo={"steps": [call("refund")]}),
            ],
            "finally": [call("bye")],
        }
    )
    assert [path for path, _ in walk(plan)] == [
        *("resize", "resize.thumb", "resize.in", "resize.in.a", "resize.in.b"),
        *("resize.catch.notify", "resize.finally.clean", "pay", "pay.undo.refund", "finally.bye"),
    ]
    assert all(path.endswith(each.id) for path, each in walk(plan))

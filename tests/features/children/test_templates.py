"""Steps that run templates are checked against the templates there are."""

from __future__ import annotations

from typing import Any

import pytest

from plansurvive.features.children.templates import template_problems
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Plan
from plansurvive.plans.model.template import Template

INPUTS = {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}, "odd": {"type": "nonsense"}}
BUILD = Template(name="build", hash="0" * 64, where="project", path="/x", text="", data={"inputs": INPUTS})


def find(name: str) -> Template:
    if name.partition("@")[0] != "build":
        raise PlanError("there is no such template", "UNKNOWN_TEMPLATE")
    return BUILD


def found(**args: Any) -> list[tuple[str, str | None]]:
    plan = Plan.model_validate({"steps": [{"id": "s", "tool": "plan", "args": args}]})
    return [(problem.code, problem.field) for problem in template_problems(plan, find)]


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ({"template": "build", "inputs": {"name": "x"}}, []),
        ({"template": "build@000000", "inputs": {"name": "$other.name", "count": "$other"}}, []),
        ({"template": "$chosen", "inputs": 5}, []),
        ({"file": "x.yaml"}, []),
        ({"template": "bild"}, [("UNKNOWN_TEMPLATE", "args.template")]),
        ({"template": "build"}, [("MISSING_INPUT", "args.inputs")]),
        ({"template": "build", "inputs": {"name": None}}, [("MISSING_INPUT", "args.inputs")]),
        ({"template": "build", "inputs": {"name": "x", "nam": "y"}}, [("UNKNOWN_INPUT", "args.inputs.nam")]),
        ({"template": "build", "inputs": {"name": "x", "count": True}}, [("BAD_INPUT", "args.inputs.count")]),
        ({"template": "build", "inputs": {"name": "x", "count": "{{a.n}}"}}, [("BAD_INPUT", "args.inputs.count")]),
        ({"template": "build", "inputs": {"name": "x", "odd": 5}}, [("UNKNOWN_INPUT", "args.inputs.odd")]),
    ],
)
def test_the_problems_of_a_call(args: dict[str, Any], problems: list[tuple[str, str]]) -> None:
    assert found(**args) == problems


NESTED: dict[str, Any] = {
    "finally": [{"id": "last", "tool": "plan", "args": {"template": "x"}}],
    "steps": [
        {"id": "block", "steps": [{"id": "in", "tool": "plan", "args": {"template": "x"}}],
         "finally": [{"id": "after", "tool": "plan", "args": {"template": "x"}}]},
        {"id": "choice", "switch": [{"when": "`true`", "steps": [{"id": "case", "tool": "plan",
                                                                 "args": {"template": "x"}}]}]},
        {"id": "risky", "tool": "sleep",
         "catch": [{"steps": [{"id": "caught", "tool": "plan", "args": {"template": "x"}}]}],
         "undo": {"steps": [{"id": "undone", "tool": "plan", "args": {"template": "x"}}]}},
    ],
}  # fmt: skip


def test_calls_are_found_wherever_they_are() -> None:
    plan = Plan.model_validate(NESTED)
    inside = [
        "block.in",
        "block.finally.after",
        "choice.case",
        "risky.catch.caught",
        "risky.undo.undone",
        "finally.last",
    ]
    assert [problem.step_id for problem in template_problems(plan, find)] == inside

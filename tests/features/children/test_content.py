"""What a plan file runs as steps is checked with it: mistakes with their place, inputs, files that run themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plansurvive.activities.tools.registry import builtin_tools
from plansurvive.client.feature import Content
from plansurvive.features.children.content import content
from plansurvive.features.children.language import LANGUAGE
from plansurvive.features.children.model import KnownPlans
from plansurvive.plans.definition.checks.validation import problems
from plansurvive.plans.definition.parsing import read_plan
from plansurvive.plans.model import Plan

TOOLS = {name: tool.spec for name, tool in builtin_tools().items()}
CHILD = {
    "inputs": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
    "steps": [{"id": "read", "tool": "read_file", "args": {"path": "{{inputs.name}}"}}],
}


def plan_of(*steps: dict[str, Any]) -> Plan:
    """A plan of these steps."""
    plan = read_plan({"steps": list(steps)})
    assert isinstance(plan, Plan), plan
    return plan


def run(**args: Any) -> dict[str, Any]:
    """A step that runs a plan."""
    return {"id": "run", "tool": "plan", "args": args}


def checked(folder: Path, *steps: dict[str, Any]) -> Content:
    """What is found in the files that these steps run."""
    return content(plan_of(*steps), TOOLS, folder, None)


def found(result: Content) -> list[tuple[str, str | None, str]]:
    """Code, field and severity of each problem."""
    return [(each.code, each.field, each.severity) for each in result.problems]


def hashes(result: Content) -> list[str]:
    """The hashes that go with the start."""
    assert isinstance(result.part, KnownPlans)
    return result.part.sha256


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a sound plan file, and one with a mistake."""
    (tmp_path / "child.json").write_text(json.dumps(CHILD))
    (tmp_path / "bad.yaml").write_text("steps: [{id: x, tool: read_file, args: {path: $y}}]")
    (tmp_path / "self.yaml").write_text("steps: [{id: again, tool: plan, args: {file: self.yaml}}]")
    return tmp_path


def test_a_sound_file_has_no_problem_and_its_hash_goes_with_the_start(folder: Path) -> None:
    result = checked(
        folder,
        run(file="child.json", inputs={"name": "a"}),
        {**run(file="child.json", inputs={"name": "$x"}), "id": "b"},
    )
    assert result.problems == []
    assert len(hashes(result)) == 1


def test_inputs_are_compared_with_those_that_the_file_declares(folder: Path) -> None:
    wrong = checked(folder, run(file="child.json", inputs={"nam": "a", "count": "three"}))
    assert found(wrong) == [
        ("UNKNOWN_INPUT", "args.inputs.nam", "error"),
        ("MISSING_INPUT", "args.inputs.name", "error"),
        ("BAD_INPUT", "args.inputs.count", "error"),
    ]
    unknown = checked(folder, run(file="child.json", inputs={"name": "a", "count": "$other"}))
    assert unknown.problems == []


def test_a_mistake_in_a_file_is_told_with_its_place(folder: Path) -> None:
    assert found(checked(folder, run(file="bad.yaml"))) == [
        ("BAD_REFERENCE", "args.file bad.yaml.x.args.path", "error")
    ]
    each = "{id: x, forEach: [a], tool: sleep, args: {seconds: 0}}, {id: y, tool: read_file, args: {path: $x.n}}"
    (folder / "list.yaml").write_text(f"steps: [{each}]")
    assert found(checked(folder, run(file="list.yaml"))) == [
        ("BAD_REFERENCE", "args.file list.yaml.y.args.path", "error")
    ]
    deep = checked(folder, run(steps=[{"id": "in", "tool": "plan", "args": {"file": "bad.yaml"}}]))
    assert found(deep) == [("BAD_REFERENCE", "args.steps.in.args.file bad.yaml.x.args.path", "error")]


def test_a_file_that_runs_itself_is_a_warning(folder: Path) -> None:
    assert [each[0] for each in found(checked(folder, run(file="self.yaml")))] == ["RUNS_ITSELF"]


def test_a_file_that_is_not_there_is_a_warning_unless_a_step_writes_it(folder: Path) -> None:
    assert found(checked(folder, run(file="later.json"))) == [("NOT_FOUND", "args.file", "warning")]
    write = {"id": "write", "tool": "write_file", "args": {"path": "later.json", "content": "{}"}}
    assert checked(folder, write, run(file="later.json")).problems == []
    assert found(checked(folder, run(file="../x.json")))[0][0] == "PATH_OUTSIDE"
    assert found(checked(folder, run(template="none")))[0][0] == "UNKNOWN_TEMPLATE"


@pytest.mark.parametrize(
    "args", [{}, {"file": "a", "template": "b"}, {"file": "a", "steps": [{"id": "x", "tool": "sleep"}]}]
)
def test_a_plan_step_has_exactly_one_source(args: dict[str, Any]) -> None:
    wrong = [each for each in problems(plan_of(run(**args)), TOOLS, language=LANGUAGE) if each.field == "args"]
    assert [(each.code, each.step_id) for each in wrong] == [("INVALID_ARGS", "run")]


def test_references_in_inline_steps_mean_the_child(folder: Path) -> None:
    inner = [
        {"id": "a", "tool": "read_file", "args": {"path": "{{inputs.path}}"}},
        {"id": "b", "tool": "write_file", "args": {"path": "b", "content": "$a"}},
    ]
    other = {"id": "other", "tool": "read_file", "args": {"path": "x"}}
    assert problems(plan_of(other, run(steps=inner, inputs={"path": "$other"})), TOOLS, language=LANGUAGE) == []
    inside = [{"id": "a", "tool": "read_file", "args": {"path": "$other"}}]
    wrong = problems(plan_of(other, run(steps=inside)), TOOLS, language=LANGUAGE)
    assert [(each.code, each.field) for each in wrong] == [("BAD_REFERENCE", "args.steps.a.args.path")]
    assert plan_of(run(steps=inner, inputs={"path": "$other"})).steps[0].args["steps"] == inner

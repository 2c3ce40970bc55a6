"""Plan files on disk: what is read, as what, and what is said of a file that cannot be."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client.plan_file import PlanFileError, check, load
from plansurvive.plans.definition.parsing import MAX_BYTES, MAX_FOUND
from plansurvive.plans.errors import InvalidPlan
from plansurvive.plans.model import Problem

STEP = {"id": "one", "tool": "read_file", "args": {"path": "a.txt"}}
YAML = "steps:\n  - id: one\n    tool: read_file\n    args: {path: a.txt}\n"


def written(directory: Path, name: str, text: str | bytes) -> str:
    """A file of that text."""
    path = directory / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.parametrize("name", ["plan.json", "plan", "plan.txt"])
def test_json_is_read_whatever_the_name(tmp_path: Path, name: str) -> None:
    assert load(written(tmp_path, name, json.dumps({"steps": [STEP]}))).data == {"steps": [STEP]}


@pytest.mark.parametrize("name", ["plan.yaml", "plan.YML", "plan"])
def test_yaml_is_read_where_the_text_is_no_json(tmp_path: Path, name: str) -> None:
    assert load(written(tmp_path, name, YAML)).data == {"steps": [STEP]}


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    assert load(written(tmp_path, "plan.yaml", b"\xef\xbb\xbf" + YAML.encode())).data == {"steps": [STEP]}


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.json", "", "PLAN_NOT_JSON"),
        ("a.json", "steps: []", "PLAN_NOT_JSON"),
        ("a", "", "PLAN_NOT_JSON"),
        ("a.json", '{"steps":[],"steps":[]}', "PLAN_DUPLICATE_KEY"),
        ("a.yaml", "steps: []\nsteps: []", "PLAN_DUPLICATE_KEY"),
        ("a.json", b"\xff\xfe{}", "PLAN_NOT_JSON"),
        ("a.yaml", b" " * (MAX_BYTES + 1), "PLAN_TOO_LARGE"),
    ],
)
def test_a_text_that_is_no_plan_is_refused(tmp_path: Path, name: str, text: str | bytes, code: str) -> None:
    with pytest.raises(InvalidPlan) as refused:
        load(written(tmp_path, name, text))
    assert [problem.code for problem in refused.value.problems] == [code]


def test_a_file_that_cannot_be_opened_is_told_apart(tmp_path: Path) -> None:
    for name, code in (("missing.yaml", "NOT_FOUND"), (".", "NOT_REGULAR"), ("a\0b", "UNREADABLE")):
        with pytest.raises(PlanFileError) as refused:
            load(str(tmp_path / name))
        assert refused.value.code == code


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_apart(tmp_path: Path) -> None:
    path = Path(written(tmp_path, "plan.yaml", YAML))
    path.chmod(0)
    with pytest.raises(PlanFileError) as refused:
        load(str(path))
    assert refused.value.code == "NO_PERMISSION"


def test_a_problem_is_found_again_at_the_line_of_its_step(tmp_path: Path) -> None:
    found = load(written(tmp_path, "plan.yaml", YAML + "  - id: 'two'\n    tool: nope\n"))
    assert found.line(Problem(code="X", message="x", step_id="two")) == 5
    assert found.line(Problem(code="X", message="x", step_id="three")) is None
    assert found.line(Problem(code="X", message="x")) is None


def test_a_file_knows_where_its_relative_paths_begin(tmp_path: Path) -> None:
    found = load(written(tmp_path, "clean up.yaml", YAML))
    assert (found.title, found.directory) == ("clean up", tmp_path.resolve())


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        ({"steps": [STEP]}, set()),
        ([], {"PLAN_SCHEMA"}),
        ({"steps": [{**STEP, "tool": "read_fil", "dependsOn": ["two"]}]}, {"UNKNOWN_TOOL", "UNKNOWN_DEPENDENCY"}),
        ({"steps": [{**STEP, "colour": "red", "retry": 3, "tool": "read_fil"}]}, {"PLAN_SCHEMA", "UNKNOWN_TOOL"}),
        ({"version": 0, "steps": [{**STEP, "dependsOn": ["two"]}]}, {"PLAN_SCHEMA", "UNKNOWN_DEPENDENCY"}),
        ({"steps": [{**STEP, "args": []}, {"id": "a b", "tool": "x"}, 5]}, {"PLAN_SCHEMA"}),
        ({"steps": [{**STEP, "args": []}]}, {"PLAN_SCHEMA"}),
    ],
)
def test_every_problem_is_told_at_once(data: Any, codes: set[str]) -> None:
    specs = {name: tool.spec for name, tool in load_tools(()).items()}
    assert {problem.code for problem in check(data, specs)[1]} == codes


@pytest.mark.parametrize(
    ("name", "title"), [("tidy-up.yaml", "tidy-up"), ("plan.yaml", "monday"), ("Plan.json", "monday")]
)
def test_a_plan_without_a_title_is_called_by_its_file(tmp_path: Path, name: str, title: str) -> None:
    directory = tmp_path / "monday"
    directory.mkdir()
    assert load(written(directory, name, json.dumps({"steps": [STEP]}))).title == title


def test_a_plan_with_very_many_malformed_fields_is_not_checked_further() -> None:
    """The other mistakes of a step are told once its form is right."""
    steps = [{"id": f"s{number}", "tool": "nonsense", "notes": number} for number in range(MAX_FOUND + 1)]
    found = [problem.code for problem in check({"steps": steps}, {})[1]]
    assert "UNKNOWN_TOOL" not in found
    assert found[-1] == "MORE_PROBLEMS"
    assert "UNKNOWN_TOOL" in [problem.code for problem in check({"steps": steps[:10]}, {})[1]]


def test_a_problem_inside_a_block_has_the_line_of_that_step(tmp_path: Path) -> None:
    rows = [
        *(
            "steps:",
            "- id: x",
            "  tool: sleep",
            "- id: b",
            "  steps:",
            "  - {id: a, tool: sleep}",
            "  - {id: x, tool: t}",
        ),
        *("  catch:", "  - steps:", "    - {id: x, tool: t}", "- id: c", "  steps:", "  - {id: a, tool: t}"),
    ]
    found = load(written(tmp_path, "plan.yaml", "\n".join(rows)))
    lines = {
        path: found.line(Problem(code="X", message="x", step_id=path)) for path in ("x", "b.x", "c.a", "b.catch.x")
    }
    assert lines == {"x": 2, "b.x": 7, "c.a": 13, "b.catch.x": 10}
    assert found.line(Problem(code="X", message="x", step_id="c.gone")) is None

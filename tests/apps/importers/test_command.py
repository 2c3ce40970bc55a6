"""`plan import`: what it prints and writes, how it exits, and what hostile documents do to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plansurvive.apps.importers.commands import ImportRefused, imported
from plansurvive.apps.importers.common.plan_text import data_of, text_of
from plansurvive.apps.importers.common.report import MAX_LOSSES, Imported, Report
from plansurvive.client.cli.app import run
from plansurvive.client.plan_file import PlanFile
from plansurvive.runtime.plan_files.lines import MAX_LINES, lines_of
from plansurvive.runtime.plan_files.yaml_reader import parse_yaml

CLEAN = "on: workflow_dispatch\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps: [{run: make}]\n"
LOSSY = CLEAN.replace("runs-on: ubuntu-latest", "runs-on: macos-14")
FLOW = "document: {dsl: '1.0.0', namespace: n, name: x, version: '1.0.0'}\ndo:\n- a: {wait: PT1S}\n"


def written(place: Path, text: str, name: str = "ci.yml") -> str:
    (place / name).write_text(text)
    return str(place / name)


def imported_by(*arguments: str, code: int = 0) -> None:
    assert run(["import", *arguments], {"HOME": "/nowhere"}) == code


def test_the_plan_is_printed_and_what_was_lost_is_said_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported_by(written(tmp_path, LOSSY))
    printed = capsys.readouterr()
    assert parse_yaml(printed.out)["steps"][0]["id"] == "a"
    assert "# Not carried over:\n# - line 4, jobs.a.runs-on: it runs on" in printed.out
    assert "loss  line 4, jobs.a.runs-on: it runs on" in printed.err
    assert printed.err.endswith("1 not imported, 0 notes\n")


def test_the_plan_is_written_to_a_file_that_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "plan.yaml")
    imported_by(written(tmp_path, CLEAN), "--out", out)
    assert capsys.readouterr().out == f"Wrote {out}; check it with: plan check {out}\n"
    assert run(["check", out], {"HOME": "/nowhere"}) == 0
    Path(out).write_text("# edited by hand\n")
    imported_by(written(tmp_path, CLEAN), "--out", out, code=2)
    assert f"--out: {out} exists already; choose another file, or remove it first" in capsys.readouterr().err
    assert Path(out).read_text() == "# edited by hand\n"


def test_json_has_the_plan_and_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported_by(written(tmp_path, LOSSY), "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["losses"], found["problems"], found["file"]) == ("github", 1, [], None)
    assert found["plan"]["steps"][0]["steps"][0]["tool"] == "run_command"
    [entry] = found["report"]
    assert (entry["kind"], entry["where"], entry["line"]) == ("loss", "jobs.a.runs-on", 4)


def test_strict_exits_with_1_on_a_loss_only(tmp_path: Path) -> None:
    imported_by(written(tmp_path, LOSSY), "--strict", code=1)
    imported_by(written(tmp_path, CLEAN), "--strict")
    imported_by(written(tmp_path, FLOW), "--strict")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: 1", "UNKNOWN_FORMAT"),
        ("[1]", "UNKNOWN_FORMAT"),
        ("runs: {using: composite, steps: []}", "is a GitHub action (runs), not a workflow"),
        ("jobs: {}", "NOTHING_CARRIED"),
        ("jobs: {a: 5}", "NOTHING_CARRIED"),
        ("document: {}\ndo: []", "NOTHING_CARRIED"),
        ("jobs: {a: [}", "PLAN_NOT_YAML"),
    ],
)
def test_a_document_of_which_nothing_is_left_is_refused(
    text: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    imported_by(written(tmp_path, text), code=2)
    assert code in capsys.readouterr().err


def test_a_program_is_answered_with_what_can_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dag = tmp_path / "dag.py"
    dag.write_text("from airflow import DAG\n\nwith DAG('nightly'):\n    pass\n")
    imported_by(str(dag), code=2)
    told = capsys.readouterr().err
    assert "dag.py is a Python program" in told
    assert "GitHub Actions workflows (jobs) and Serverless Workflows" in told


def test_the_format_can_be_named(tmp_path: Path) -> None:
    imported_by(written(tmp_path, FLOW), "--from", "serverless")
    imported_by(written(tmp_path, FLOW), "--from", "github", code=2)


ODD: list[Any] = [
    None, 5, "x", [], {}, [[]], {"a": {}}, {"a": {"steps": 5}}, {"a": {"steps": [5, None, {}]}}, {"a": {"needs": {}}},
    {"a": {"steps": [{"run": None}, {"run": 5}, {"uses": []}, {"if": {}, "run": "x"}]}},
    {"a": {"strategy": 5, "env": "x", "outputs": {"a": 5}, "if": 5, "steps": [{"run": "x", "env": [1], "with": 5}]}},
    {"a": {"strategy": {"matrix": {"x": [[], {}, None], "include": 5, "exclude": [5]}}, "steps": [{"run": "x"}]}},
    {"a": {"strategy": {"matrix": {letter: list(range(99)) for letter in "abcdefgh"}}, "steps": [{"run": "x"}]}},
    {"a": {"uses": 5, "with": 5, "secrets": 5}},
    {"a": {"steps": [{"run": "x", "id": "../x", "name": "\x1b[2J", "shell": " ", "timeout-minutes": "x"}]}},
    {f"j{number}": {"steps": [{"run": "${{ secrets.A }}"}] * 5} for number in range(20)},
]  # fmt: skip


@pytest.mark.parametrize("jobs", ODD)
def test_a_workflow_of_any_shape_is_imported_or_refused(jobs: Any) -> None:
    is_imported({"on": 5, "jobs": jobs})


def is_imported(data: Any) -> None:
    """Import a document; whatever comes out is written and read back."""
    text = json.dumps(data)
    try:
        made = imported(PlanFile("x.json", text, data))
    except ImportRefused:
        return
    assert parse_yaml(text_of(made, "x.json")) == data_of(made)
    assert "\x1b" not in text_of(made, "x.json")


TASKS: list[Any] = [
    5, [5], [{}], [{"a": 5}], [{"a": {}}], [{"a": {"call": 5}}], [{"a": {"call": "http", "with": 5}}],
    [{"a": {"run": 5}}],
    [{"a": {"run": {"shell": {}}}}], [{"a": {"run": {"script": {"code": 5}}}}], [{"a": {"run": {"container": {}}}}],
    [{"a": {"wait": []}}], [{"a": {"listen": {"to": 5}}}], [{"a": {"listen": {"to": {"all": [5]}}}}],
    [{"a": {"raise": 5}}],
    [{"a": {"for": 5, "do": 5}}], [{"a": {"for": {"in": "${"}, "do": [{"b": {"wait": "PT1S"}}]}}], [{"a": {"fork": 5}}],
    [{"a": {"try": 5, "catch": 5}}], [{"a": {"try": [{"b": {"wait": "PT1S"}}], "catch": {"retry": 5, "errors": 5}}}],
    [{"a": {"switch": 5}}], [{"a": {"switch": [{"x": {"when": 5, "then": 5}}], "then": "a"}}],
    [{"a": {"if": 5, "set": 5, "output": 5, "export": 5, "input": 5, "timeout": 5}}], [{"a": {"emit": 5}}],
    [{"a": {"call": "http", "with": {"endpoint": "${", "headers": 5, "query": 5, "method": 5, "body": {"${": "$x"}}}}],
]  # fmt: skip


@pytest.mark.parametrize("tasks", TASKS)
def test_tasks_of_any_shape_are_imported_or_refused(tasks: Any) -> None:
    is_imported({"document": {"name": 5}, "input": 5, "use": 5, "do": tasks, "schedule": 5, "output": {"as": "${"}})


def test_a_report_and_its_places_are_bounded() -> None:
    report = Report()
    for number in range(MAX_LOSSES + 10):
        report.loss((str(number),), "lost")
        report.note((str(number),), "noted")
    assert len(report.entries) == MAX_LOSSES
    assert report.losses >= MAX_LOSSES // 2 + 10
    assert len(lines_of("[" + "1," * (MAX_LINES + 10) + "]")) <= MAX_LINES
    assert lines_of("a: [") == {}


@pytest.mark.parametrize(
    "value",
    ["yes", "1e3", "0o17", "12:30", "~", "null", ".inf", "a\nb", " a\n", "\ta\n b", "\x85x", "#x", "- x", "é", "1_000"],
)  # fmt: skip
def test_texts_come_back_from_the_yaml_as_they_are(value: str) -> None:
    made = Imported(
        "github", {"title": value, "steps": [{"id": "a", "x-import": "0", "args": {value: [value]}}]}, Report()
    )
    assert parse_yaml(text_of(made, "x\n# y")) == data_of(made)

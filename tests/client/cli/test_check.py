"""Commands without a server: check, schema, tools, graph of a file, and what the command line itself refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from plansurvive.client.cli.app import run
from tests.client.cli.command import plan, written

GOOD = {"title": "Good", "steps": [{"id": "a", "tool": "read_file", "args": {"path": "x"}}]}
SIX_MISTAKES = """\
title: Six mistakes
steps:
  - id: a
    tool: read_fil
    args: {path: x}
  - id: b
    tool: write_file
    args: {path: y}
    dependsOn: [missing]
  - id: c
    tool: read_file
    args: {path: $nowhere}
    dependsOn: [d]
  - id: d
    tool: sleep
    args: {seconds: 1}
    dependsOn: [c]
  - id: e
    tool: sleep
    args: {seconds: 1}
  - id: e
    tool: sleep
    args: {seconds: 1}
"""
SIX_CODES = {
    "UNKNOWN_TOOL", "INVALID_ARGS", "UNKNOWN_DEPENDENCY", "BAD_REFERENCE", "PLAN_CYCLE", "PLAN_DUPLICATE_ID",
}  # fmt: skip


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """An environment in which no server could be reached."""
    root = str(Path(__file__).parents[3])
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TEMPORAL_ADDRESS": "127.0.0.1:1", "PYTHONPATH": root}


async def test_check_names_every_mistake_with_its_line(offline: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "six.yaml"
    file.write_text(SIX_MISTAKES)
    ended = await plan(offline, "check", str(file))
    assert ended.code == 2
    assert {code for code in SIX_CODES if code in ended.err} == SIX_CODES
    assert "line 3, step 'a', tool" in ended.err
    assert "did you mean 'read_file'?" in ended.err


async def test_check_says_the_same_as_json(offline: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "six.yaml"
    file.write_text(SIX_MISTAKES)
    ended = await plan(offline, "check", "--json", str(file))
    assert (ended.code, ended.err) == (2, "")
    assert not ended.json["valid"]
    assert {problem["code"] for problem in ended.json["problems"]} >= SIX_CODES
    assert next(each for each in ended.json["problems"] if each["code"] == "UNKNOWN_TOOL")["line"] == 3


async def test_check_of_a_sound_plan_says_so(offline: dict[str, str], tmp_path: Path) -> None:
    ended = await plan(offline, "check", written(tmp_path / "good.json", GOOD))
    assert (ended.code, ended.err) == (0, "")
    assert "1 step, ready to run" in ended.out


async def test_check_counts_the_steps_inside_others_as_well(offline: dict[str, str], tmp_path: Path) -> None:
    note = {"id": "note", "tool": "list_directory", "args": {"path": "."}}
    data = {"steps": [{"id": "each", "forEach": [1, 2], "steps": [note, {**note, "id": "more"}]}], "finally": [note]}
    file = written(tmp_path / "plan.json", data)
    assert "1 step and 3 inside them or in `finally`, ready to run" in (await plan(offline, "check", file)).out
    found = (await plan(offline, "check", file, "--json")).json
    assert (found["steps"], found["inside"]) == (1, 3)


async def test_check_reads_standard_input(offline: dict[str, str]) -> None:
    assert (await plan(offline, "check", "-", stdin=json.dumps(GOOD))).code == 0
    ended = await plan(offline, "check", "-", "--json", stdin="")
    assert (ended.code, ended.json["problems"][0]["code"]) == (2, "PLAN_NOT_JSON")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", "missing.yaml"], "NOT_FOUND"),
        (["check", "."], "NOT_REGULAR"),
        (["check"], "BAD_USAGE"),
        (["nonsense"], "BAD_USAGE"),
        (["check", "--nonsense"], "BAD_USAGE"),
        (["run", "good.json", "--max-parallel", "0"], "BAD_USAGE"),
        (["run", "good.json", "--input", "x"], "BAD_INPUT"),
        (["run", "good.json", "--input", "x=1"], "UNKNOWN_INPUT"),
        (["approve", "a", "s", "--args", "[1]"], "INVALID_ARGS"),
        (["approve", "a", "s", "--args", "{"], "INVALID_ARGS"),
        (["tools", "rm"], "UNKNOWN_TOOL"),
        (["graph", "missing.json"], "NOT_FOUND"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: str,
) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "good.json", GOOD)
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert code in told.err
    assert "Traceback" not in told.err
    assert run([*arguments, "--json"]) == 2
    assert code in json.dumps(json.loads(capsys.readouterr().out))


async def test_no_server_is_exit_code_3_and_names_the_address(offline: dict[str, str], tmp_path: Path) -> None:
    for arguments in (["list"], ["run", written(tmp_path / "good.json", GOOD)], ["show", "x"]):
        ended = await plan(offline, *arguments)
        assert ended.code == 3
        assert "NOT_CONNECTED" in ended.err
        assert "127.0.0.1:1" in ended.err


async def test_a_bad_setting_is_refused_with_its_name(offline: dict[str, str]) -> None:
    ended = await plan(offline | {"PLANS_TASK_QEUE": "x"}, "list")
    assert ended.code == 2
    assert ended.err.startswith("BAD_SETTING: PLANS_TASK_QEUE: unknown setting")
    assert "PLANS_TASK_QUEUE" in ended.err


async def test_the_schema_accepts_sound_plans_and_refuses_others(offline: dict[str, str]) -> None:
    schema = (await plan(offline, "schema", "--json")).json
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(GOOD, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"steps": [{"id": "a b", "tool": "x"}]}, schema)


async def test_tools_are_listed_with_their_arguments(offline: dict[str, str]) -> None:
    listed = (await plan(offline, "tools", "--json")).json
    assert {"read_file", "write_file", "run_command", "sleep"} <= {tool["name"] for tool in listed}
    one = await plan(offline, "tools", "write_file")
    assert "path (string)" in one.out
    assert (await plan(offline, "tools", "write_file", "--json")).json["argsSchema"]["required"] == ["path", "content"]


async def test_a_graph_shows_references_as_dependencies(offline: dict[str, str], tmp_path: Path) -> None:
    steps = [*GOOD["steps"], {"id": "b", "tool": "write_file", "args": {"path": "y", "content": "$a"}}]
    file = written(tmp_path / "two.json", {"steps": steps})
    assert "s0 --> s1" in (await plan(offline, "graph", file)).out
    assert '"a" -> "b"' in (await plan(offline, "graph", file, "--dot")).out


async def test_a_graph_says_what_it_cannot_draw(offline: dict[str, str], tmp_path: Path) -> None:
    lost = {"id": "a", "tool": "read_file", "args": {"path": "x"}, "dependsOn": ["nope"]}
    steps = [lost, {"id": "b", "tool": "read_file", "args": {"path": "$gone"}}]
    ended = await plan(offline, "graph", written(tmp_path / "lost.json", {"steps": steps}))
    assert (ended.code, ended.out.splitlines()[0]) == (0, "flowchart TD")
    assert "Unknown dependency: nope" in ended.err
    assert "'$gone' is not a step of the plan" in ended.err
    assert (await plan(offline, "graph", written(tmp_path / "good.json", GOOD))).err == ""


async def test_a_refused_plan_has_line_numbers_in_json_as_in_a_check(offline: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("steps:\n  - id: a\n    tool: read_file\n    args: {path: x}\n    dependsOn: [nope]\n")
    checked = (await plan(offline, "check", "--json", str(file))).json["problems"]
    assert [problem["line"] for problem in checked] == [2]
    assert (await plan(offline, "run", "--json", str(file))).json["error"]["problems"] == checked


async def test_the_version_and_the_help_need_nothing(offline: dict[str, str]) -> None:
    assert (await plan(offline, "--version")).out.startswith("plan ")
    helped = await plan(offline, "--help")
    for command in ("run", "start", "check", "approve", "pending", "doctor", "--install-completion"):
        assert command in helped.out


async def test_control_characters_of_a_plan_never_reach_the_terminal(offline: dict[str, str], tmp_path: Path) -> None:
    hostile = "a\x1b[2J\u202eb[bold]c[/bold]\x9b"
    step = {"id": "a", "tool": hostile, "description": hostile, "args": {}}
    file = written(tmp_path / "hostile.json", {"title": hostile, "steps": [step]})
    for arguments in (["check", file], ["check", "--json", file], ["graph", file], ["graph", "--dot", file]):
        ended = await plan(offline, *arguments)
        assert not set("\x1b\u202e\x9b") & set(ended.out + ended.err), arguments
        assert "[bold]" in ended.out + ended.err


async def test_check_tells_of_a_workspace_that_would_be_refused(offline: dict[str, str], tmp_path: Path) -> None:
    for workspace, code in (("/etc", 2), ("../..", 2), ("~", 2), (".", 0), ("below", 0)):
        file = tmp_path / "work" / "plan.json"
        file.parent.mkdir(exist_ok=True)
        ended = await plan(offline, "check", written(file, GOOD | {"workspace": workspace}), "--json")
        found = [problem["code"] for problem in ended.json["problems"]]
        assert (ended.code, found) == (code, ["WORKSPACE_REFUSED"] if code else []), workspace


async def test_steps_that_race_on_a_file_are_a_warning_with_its_line_and_not_an_error(
    offline: dict[str, str], tmp_path: Path
) -> None:
    steps = [
        {"id": "c", "tool": "run_command", "args": {"command": "date > c.txt"}},
        {"id": "d", "tool": "read_file", "args": {"path": "./c.txt"}},
    ]
    file = written(tmp_path / "race.json", {"title": "A race", "steps": steps})
    ended = await plan(offline, "check", str(file))
    assert (ended.code, "1 warning" in ended.err, "FILE_RACE" in ended.err) == (0, True, True)
    assert "'c' writes it, 'd' reads it" in " ".join(ended.err.split())
    mended = [steps[0], {**steps[1], "dependsOn": ["c"]}]
    ended = await plan(offline, "check", written(tmp_path / "mended.json", {"title": "No race", "steps": mended}))
    assert (ended.code, ended.err) == (0, "")


async def test_an_address_that_this_process_opens_is_no_warning(offline: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("steps: [{id: get, tool: http_request, args: {method: GET, url: 'http://127.0.0.1:18765/x'}}]\n")
    control = await plan(offline, "check", str(file))
    assert "ADDRESS_REFUSED" in control.out + control.err
    ended = await plan(offline | {"PLANS_HTTP_ALLOW": "127.0.0.1:18765"}, "check", str(file))
    assert "ADDRESS_REFUSED" not in ended.out + ended.err
    assert ended.code == 0

"""`plan template`: saving, listing, showing, comparing, deleting, and running a plan by its name."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from temporalio.worker import Worker

from plansurvive.client.cli.app import run
from plansurvive.features.templates.find import project_store
from plansurvive.features.templates.known import completed
from plansurvive.features.templates.names import hash_of
from tests.client.cli.command import plan

GREET = """\
# Comments survive
inputs:
  name: {type: string, description: Whom to greet}
  times: {type: integer, default: 2}
steps:
  - id: greet
    tool: write_file
    requiresApproval: false
    args: {path: hello.txt, content: "{{inputs.name}} x {{inputs.times}}"}
"""


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """An environment with a workspace, which holds a plan file, and a state directory."""
    for name in ("work", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "work" / "greet.yaml").write_text(GREET)
    return {"PLANS_WORKSPACE": str(tmp_path / "work"), "PLANS_STATE_DIR": str(tmp_path / "state"), "HOME": "/nowhere"}


def template(place: dict[str, str], *arguments: str, code: int = 0) -> None:
    assert run(["template", *arguments], place) == code


def file_of(place: dict[str, str], name: str = "greet.yaml") -> str:
    return f"{place['PLANS_WORKSPACE']}/{name}"


def shown(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_plan_is_saved_listed_and_shown_with_its_inputs_and_versions(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    template(place, "save", "greet", file_of(place), "--description", "Says hello", "--json")
    saved = shown(capsys)
    assert saved == {
        "name": "greet", "hash": hash_of(GREET), "where": "project", "changed": True,
        "path": f"{place['PLANS_WORKSPACE']}/.plans/greet/{hash_of(GREET)}.yaml",
    }  # fmt: skip
    template(place, "list")
    assert f"greet@{hash_of(GREET)[:12]}  project  1         name, times  Says hello" in capsys.readouterr().out
    template(place, "show", "greet")
    text = capsys.readouterr().out
    assert "name (string, required)  Whom to greet" in text
    assert "times (integer, default 2)" in text
    assert "Steps whose approval it waives: greet" in text
    assert text.endswith(GREET)
    template(place, "show", f"greet@{hash_of(GREET)[:6]}", "--json")
    found = shown(capsys)
    assert found["plan"]["steps"][0]["id"] == "greet"
    assert found["inputs"]["times"] == {"type": "integer", "description": "", "default": 2}
    assert (found["text"], found["waives"]) == (GREET, ["greet"])
    assert [each["hash"] for each in found["versions"]] == [hash_of(GREET)]


def test_versions_are_compared_with_each_other_and_with_a_file(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    template(place, "save", "greet", file_of(place))
    newer = Path(file_of(place, "newer.yaml"))
    newer.write_text(GREET.replace("default: 2", "default: 3"))
    template(place, "save", "greet", str(newer))
    capsys.readouterr()
    template(place, "diff", "greet")
    rows = capsys.readouterr().out.splitlines()
    assert rows[:2] == [f"--- greet@{hash_of(GREET)[:12]}", f"+++ greet@{hash_of(newer.read_text())[:12]}"]
    assert {"-  times: {type: integer, default: 2}", "+  times: {type: integer, default: 3}"} < set(rows)
    template(place, "diff", "greet", file_of(place), "--json")
    assert "+  times: {type: integer, default: 2}" in shown(capsys)["diff"]
    template(place, "diff", f"greet@{hash_of(GREET)[:8]}", file_of(place))
    assert "the same content" in capsys.readouterr().err
    template(place, "diff", f"greet@{hash_of(GREET)[:8]}", code=2)
    assert "oldest version" in capsys.readouterr().err


def test_an_unsound_plan_is_not_saved(place: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(file_of(place))
    file.write_text(GREET.replace("path: hello.txt, ", ""))
    template(place, "save", "greet", str(file), code=2)
    assert "INVALID_ARGS" in capsys.readouterr().err
    template(place, "list", "--json")
    assert shown(capsys) == []


def test_a_tool_that_only_others_have_is_a_warning(place: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(file_of(place))
    file.write_text("steps: [{id: a, tool: deploy_to_ours}]")
    template(place, "save", "deploy", str(file))
    assert "1 warning\n  UNKNOWN_TOOL" in capsys.readouterr().err


def test_the_users_own_templates_are_found_from_everywhere(
    place: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template(place, "save", "greet", file_of(place), "--user", "--json")
    path = Path(shown(capsys)["path"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "elsewhere").mkdir()
    template(place, "show", "greet", "--workspace", str(tmp_path / "elsewhere"), "--json")
    assert shown(capsys)["where"] == "user"


def test_deleting_needs_a_yes_and_says_what_it_deletes(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    template(place, "save", "greet", file_of(place))
    template(place, "delete", "greet", code=2)
    assert "pass --yes" in capsys.readouterr().err
    template(place, "delete", "greet", "--user", "--yes", code=2)
    template(place, "delete", f"greet@{'0' * 8}", "--yes", code=2)
    capsys.readouterr()
    template(place, "delete", "greet", "--yes")
    assert capsys.readouterr().out == "Deleted greet, with all its versions\n"
    template(place, "show", "greet", code=2)


def test_a_shell_completes_names_and_versions(place: dict[str, str]) -> None:
    template(place, "save", "greet", file_of(place))
    assert completed("gr", place) == ["greet"]
    assert completed("greet@", place) == [f"greet@{hash_of(GREET)[:12]}"]
    assert completed("x", place) == []
    assert completed("", {**place, "PLANS_BAD": "1"}) == []


def test_a_list_shows_what_cannot_be_read_and_everything_else(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    template(place, "save", "greet", file_of(place))
    store = project_store(Path(place["PLANS_WORKSPACE"]))
    store.save("odd", "steps: [")
    store.save("edited", "steps: []")
    (Path(place["PLANS_WORKSPACE"]) / ".plans" / "edited" / f"{hash_of('steps: []')}.yaml").write_text("x")
    capsys.readouterr()
    template(place, "list", "--json")
    problems = {each["name"]: each["problem"] for each in shown(capsys)}
    assert not problems["greet"]
    assert "PLAN_NOT_YAML" in problems["odd"]
    assert "was changed after it was saved" in problems["edited"]


def test_texts_of_a_template_cannot_redraw_the_terminal(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(file_of(place))
    file.write_text(GREET.replace("Whom to greet", '"\\e[2J\u202e"'))
    template(place, "save", "greet", str(file), "--description", "\x1b[2J")
    for command in ("list", "show"):
        template(place, command, *(["greet"] if command == "show" else []))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_what_is_wrong_with_a_call_of_a_template_is_reported(
    place: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    template(place, "save", "greet", file_of(place))
    calls = [{"template": "gret"}, {"template": "greet", "inputs": {"nam": "x", "times": "often"}}]
    steps = [{"id": f"s{number}", "tool": "plan", "args": args} for number, args in enumerate(calls)]
    file = Path(file_of(place, "caller.json"))
    file.write_text(json.dumps({"steps": steps}))
    capsys.readouterr()
    assert run(["check", str(file), "--json"], place) == 2
    found = {(each.get("stepId") or each.get("step_id"), each["code"]): each for each in shown(capsys)["problems"]}
    assert "did you mean 'greet'" in found["s0", "UNKNOWN_TEMPLATE"]["message"]
    assert "did you mean 'name'" in found["s1", "UNKNOWN_INPUT"]["message"]
    assert found["s1", "BAD_INPUT"]["field"] == "args.inputs.times"
    assert ("s1", "MISSING_INPUT") in found


async def test_a_template_runs_by_its_name_with_typed_inputs(
    environ: dict[str, str], worker: Worker, workspace: Path, tmp_path: Path
) -> None:
    source = tmp_path / "greet.yaml"
    source.write_text(GREET)
    saved = await plan(environ, "template", "save", "greet", str(source), "--workspace", str(workspace))
    assert saved.code == 0, saved.err
    wrong = await plan(environ, "template", "run", "greet", "--input", "times=often", "--workspace", str(workspace))
    assert wrong.code == 2
    assert "the input 'name' (Whom to greet) is required; give it with --input name=VALUE" in wrong.err
    assert "should be a whole number; it is 'often'; pass another, such as --input times=3" in wrong.err
    ended = await plan(
        environ, "template", "run", "greet", "--input", "name=Ada", "--input", "times=3", "--workspace", str(workspace)
    )
    assert ended.code == 0, ended.err
    assert (workspace / "hello.txt").read_text() == "Ada x 3"
    assert f"greet@{hash_of(GREET)[:12]} waives the approval of: greet" in ended.err
    name = ended.out.split()[1]
    assert name.startswith("greet-")
    details = await plan(environ, "show", name)
    assert 'Inputs: name = "Ada", times = 3' in details.out

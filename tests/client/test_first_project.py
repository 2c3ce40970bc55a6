"""`plan init`: what it writes works as it is, and what is there stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import pytest
import yaml

from plansurvive.client.first_project.create import AGENTS, EDITOR, PLAN, SCHEMA, TOOL, NoProject, create
from plansurvive.client.plan_file import plan_schema
from tests.client.cli.command import plan

ROOT = Path(__file__).parents[2]


def made(directory: Path) -> dict[str, str]:
    return {each.path: each.state for each in create(directory, plan_schema())}


def environ(directory: Path, tools: str = TOOL) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(directory / "home"),
        "PYTHONPATH": str(ROOT),
        "PLANS_TOOLS": tools,
    }


def run(*command: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=directory, env=environ(directory), capture_output=True, text=True, check=False
    )


def test_everything_is_made_in_a_directory_that_need_not_exist(tmp_path: Path) -> None:
    found = made(tmp_path / "a" / "b")
    assert set(found.values()) == {"created"}
    assert {PLAN, TOOL, SCHEMA, EDITOR, AGENTS, "tests/test_words.py"} == found.keys()
    assert all((tmp_path / "a" / "b" / path).is_file() for path in found)


def test_the_plan_is_sound_with_its_tool_and_says_which_step_will_ask(tmp_path: Path) -> None:
    made(tmp_path)
    found = run("-m", "plansurvive", "check", PLAN, "--json", directory=tmp_path)
    told = json.loads(found.stdout)
    assert (told["valid"], told["problems"]) == (True, [])
    assert [each["stepId"] for each in told["asks"]] == ["clean"]


async def test_without_the_tool_the_check_names_what_is_missing(tmp_path: Path) -> None:
    made(tmp_path)
    found = await plan(environ(tmp_path, tools=""), "check", str(tmp_path / PLAN))
    assert found.code == 2
    assert "UNKNOWN_TOOL" in found.out + found.err


@pytest.mark.slow
@pytest.mark.sampled
def test_the_tests_of_the_tool_pass(tmp_path: Path) -> None:
    made(tmp_path)
    found = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "tests", directory=tmp_path)
    assert "2 passed" in found.stdout, found.stdout + found.stderr


def test_the_plan_fits_the_schema_that_editors_get(tmp_path: Path) -> None:
    made(tmp_path)
    schema = json.loads((tmp_path / SCHEMA).read_text())
    jsonschema.validate(yaml.safe_load((tmp_path / PLAN).read_text()), schema)
    assert schema == plan_schema()
    settings = json.loads((tmp_path / EDITOR).read_text())
    [path] = settings["yaml.schemas"]
    assert (tmp_path / path).samefile(tmp_path / SCHEMA)


def test_what_is_there_stays_and_only_the_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / PLAN).write_text("mine")
    (tmp_path / EDITOR).write_text("{}")
    (tmp_path / SCHEMA).write_text("{}")
    found = made(tmp_path)
    assert (found[PLAN], found[EDITOR], found[SCHEMA], found[TOOL]) == ("kept", "kept", "updated", "unchanged")
    assert (tmp_path / PLAN).read_text() == "mine"
    assert (tmp_path / EDITOR).read_text() == "{}"


def test_the_section_for_agents_is_brought_up_to_date_and_what_is_around_it_stays(tmp_path: Path) -> None:
    made(tmp_path)
    section = (tmp_path / AGENTS).read_text()
    (tmp_path / AGENTS).write_text(f"# Mine\n\n{section.replace('plan check', 'plan chek')}\nMine as well.\n")
    assert made(tmp_path)[AGENTS] == "updated"
    assert (tmp_path / AGENTS).read_text() == f"# Mine\n\n{section}\nMine as well.\n"
    assert made(tmp_path)[AGENTS] == "unchanged"


async def test_an_agents_md_without_the_section_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / AGENTS).write_text("# Mine\n")
    assert made(tmp_path)[AGENTS] == "kept"
    assert (tmp_path / AGENTS).read_text() == "# Mine\n"
    found = await plan(environ(tmp_path), "init", str(tmp_path))
    assert "<!-- plans: begin" in found.err + found.out


async def test_the_plan_in_the_section_for_agents_is_sound(tmp_path: Path) -> None:
    made(tmp_path)
    text = (tmp_path / AGENTS).read_text().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "plan.yaml").write_text(textwrap.dedent(text))
    found = await plan(environ(tmp_path, str(tmp_path / TOOL)), "check", str(tmp_path / PLAN), "--json")
    assert found.json["problems"] == []


def test_a_link_is_never_written_through(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("theirs")
    project = tmp_path / "project"
    (project / ".plans").mkdir(parents=True)
    (project / SCHEMA).symlink_to(elsewhere)
    assert made(project)[SCHEMA] == "kept"
    assert elsewhere.read_text() == "theirs"


def test_a_file_in_the_place_of_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "tools").write_text("")
    with pytest.raises(NoProject, match="tools") as refused:
        made(tmp_path)
    assert refused.value.code == "NOT_A_DIRECTORY"

"""What the command line is before any command runs, and what it imports."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client.cli.app import app
from plansurvive.client.cli.commands import (
    ALIASES,
    COMMANDS,
    ELSEWHERE,
    EXAMPLES,
    GROUPS,
    LAST_GROUP,
    groups,
    imported,
)
from plansurvive.client.cli.terminal.usage import ONCE
from tests.client.cli.command import plan

ROOT = Path(__file__).parents[3]
NOT_FOR_HELP = {"pydantic", "rich", "temporalio", "jsonschema", "yaml", "httpx", "textual", "plansurvive.plans.model"}
NOT_FOR_CHECK = {
    "temporalio",
    "httpx",
    "openai",
    "textual",
    "starlette",
    "watchfiles",
    "plansurvive.client.verbs.runs",
    "plansurvive.plans.execution",
}
NOT_FOR_LIST = {
    "jsonschema",
    "httpx",
    "openai",
    "textual",
    "starlette",
    "watchfiles",
    "yaml",
    "plansurvive.client.verbs.runs",
    "plansurvive.workflows",
}
NEEDED_BY_FEW = {"plansurvive.activities.tools.registry", "openai", "temporalio.testing", "textual", "watchfiles"}


def loaded(*arguments: str, environ: dict[str, str] | None = None) -> set[str]:
    """The modules that a process of its own has imported once it has run this command; it exits as the command does."""
    program = "import os, sys; from plansurvive.client.cli.app import run; code = run(sys.argv[1:])"
    program += "; print('modules:', *sys.modules, flush=True); os._exit(code)"
    return modules(program, *arguments, environ=environ)


def modules(program: str, *arguments: str, environ: dict[str, str] | None = None) -> set[str]:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("modules:")[2].split())


def help_of(*arguments: str, **environ: str) -> str:
    command = [sys.executable, "-m", "plansurvive", *arguments]
    given = {**os.environ, "COLUMNS": "80", **environ}
    return subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=True).stdout


def test_help_imports_nothing_that_only_commands_need() -> None:
    assert not loaded("--help") & NOT_FOR_HELP


@pytest.mark.slow
@pytest.mark.in_turn
def test_check_imports_no_temporal() -> None:
    assert not loaded("check", "examples/first-steps.yaml") & NOT_FOR_CHECK


@pytest.mark.slow
@pytest.mark.in_turn
def test_list_imports_temporal_and_nothing_that_reads_plans(environ: dict[str, str]) -> None:
    found = loaded("list", "--since", "2999-01-01", environ=environ)  # without open plans, whose standing is asked for
    assert "temporalio.client" in found
    assert not found & NOT_FOR_LIST


@pytest.mark.slow
@pytest.mark.in_turn
def test_no_command_imports_what_only_few_need() -> None:
    program = "import sys; from plansurvive.client.cli.commands import COMMANDS, imported"
    found = modules(f"{program}; [imported(name) for name in COMMANDS]; print('modules:', *sys.modules)")
    assert not found & NEEDED_BY_FEW


def test_the_names_of_these_modules_are_right() -> None:
    """There is a module of each: a name misspelt would never be found among those that are loaded."""
    needed = NOT_FOR_HELP | NOT_FOR_CHECK | NOT_FOR_LIST | NEEDED_BY_FEW
    assert [name for name in sorted(needed) if importlib.util.find_spec(name) is None] == []


def test_plan_alone_shows_the_help() -> None:
    assert help_of() == help_of("--help")


def test_every_command_is_in_one_group_with_a_sentence_that_fits() -> None:
    text, examples = help_of("--help").split("Examples:\n")
    rows = [
        row for group in (*GROUPS, LAST_GROUP) for row in text.split(f"{group}:\n")[1].split("\n\n")[0].splitlines()
    ]
    assert [row for row in rows if not row.endswith(".") or row.endswith("...")] == []
    assert sorted(row.split()[0] for row in rows) == sorted(str(each.name) for each in app.registered_commands)
    assert [row.split("  ")[1] for row in examples.splitlines()] == list(EXAMPLES)


def test_every_group_and_example_names_commands_that_exist() -> None:
    named = [
        *chain.from_iterable(groups(COMMANDS).values()),
        *(each.split()[1] for each in EXAMPLES),
        *ALIASES.values(),
    ]
    assert set(named) <= set(COMMANDS)
    assert not COMMANDS.keys() & {*ALIASES, *ELSEWHERE}
    assert {name for text in ELSEWHERE.values() for name in re.findall("`plan ([a-z]+)", text)} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_sentence_in_the_list_begins_the_commands_own_help(name: str) -> None:
    command = imported(name)
    assert command.name == name
    assert (command.help or "").startswith(COMMANDS[name][1])


async def test_the_help_of_a_command_is_its_own() -> None:
    text = (await plan({}, "list", "-h")).out
    assert text.startswith("Usage: plan list [OPTIONS]\n\n  List plans, those that have not ended first.\n")
    assert "--running" in text
    assert (await plan({}, "pending", "-h")).out.startswith("Usage: plan pending [OPTIONS] [ID] [STEP]\n")


@pytest.mark.slow
@pytest.mark.in_turn
def test_a_shell_completes_commands_and_their_options() -> None:
    def completed(words: str, number: int) -> list[str]:
        return help_of(_PLAN_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(number)).split()

    assert completed("plan res", 1) == ["resume"]
    assert completed("plan run --works", 2) == ["--workspace"]


def every_command(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A command, or all those of a group, each with its whole name."""
    if not hasattr(command, "commands"):
        yield name, command
    for inner, each in getattr(command, "commands", {}).items():
        yield from every_command(f"{name} {inner}", each)


def test_every_command_refuses_an_option_given_twice_that_says_what_it_is_about() -> None:
    found = set[str]()
    for name, command in chain.from_iterable(every_command(name, imported(name)) for name in COMMANDS):
        for option in command.params:
            if option.param_type_name != "option" or option.multiple or not ONCE.intersection(option.opts):
                continue
            with pytest.raises(Exception, match="is given 2 times, and takes one value"):
                command.make_context(name, [option.opts[-1], "a", option.opts[-1], "b"])
            found.add(f"{name} {option.opts[-1]}")
    assert {"rerun --only", "schedule backfill --from", "policy test --args", "import --from"} <= found

"""Every command that acts on plans has its function in `client.runs`, and each of them is documented."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping

import pytest

from plansurvive.client import runs
from plansurvive.client.cli.commands import COMMANDS

NOT_ON_PLANS = {
    "init",
    "check",
    "import",
    "tools",
    "notify",
    "keys",
    "secrets",
    "policy",
    "worktrees",
    "diff",
    "schema",
    "up",
    "down",
    "doctor",
    "codec",
    "worker",
    "web",
    "mcp",
}
"""Commands for plan files, this machine and its processes."""
HAVE_THEIR_OWN = {"why", "limits", "quotas", "prune", "logs", "audit", "demo", "evaluate", "schedule"}
"""Commands of features and apps whose functions are in the same folder, and not in `client.runs`."""
OTHER_NAMES = {
    "run": ("start", "watch", "wait"),
    "agent": ("start_agent", "watch", "wait"),
    "list": ("list_plans",),
    "template": ("start", "watch", "wait"),
    "files": ("file_changes",),
    "clear-session": ("clear_session",),
    "watch-files": ("stamps", "files_changed"),
    "graph": ("show",),
    "add": ("edit",),
    "remove": ("edit",),
    "move": ("edit",),
    "skip": ("edit",),
    "unskip": ("edit",),
    "review": ("edit", "regenerate", "begin", "approve", "deny"),
}
"""Commands whose functions have other names; all others are called like their command."""
FUNCTIONS = [name for name in runs.__all__ if inspect.isfunction(getattr(runs, name))]


def missing(commands: Collection[str], functions: Collection[str]) -> Mapping[str, list[str]]:
    """By command, the functions that it lacks."""
    needed = {name: OTHER_NAMES.get(name, (name,)) for name in commands if name not in NOT_ON_PLANS | HAVE_THEIR_OWN}
    found = {name: [each for each in names if each not in functions] for name, names in needed.items()}
    return {name: names for name, names in found.items() if names}


def test_every_command_that_acts_on_plans_has_its_function() -> None:
    assert missing(COMMANDS, FUNCTIONS) == {}


@pytest.mark.parametrize("name", ["edit", "regenerate", "make", "undo", "start_agent"])
def test_a_missing_function_is_seen(name: str) -> None:
    assert missing(COMMANDS, set(FUNCTIONS) - {name})


def test_a_new_command_needs_a_function() -> None:
    assert missing([*COMMANDS, "teleport"], FUNCTIONS) == {"teleport": ["teleport"]}


def test_only_existing_commands_are_listed_here() -> None:
    assert set(COMMANDS) >= NOT_ON_PLANS | HAVE_THEIR_OWN | set(OTHER_NAMES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_asynchronous_takes_the_client_first_and_is_documented(name: str) -> None:
    function = getattr(runs, name)
    assert inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    assert next(iter(inspect.signature(function).parameters)) == "client"
    assert (inspect.getdoc(function) or "").partition("\n")[0].endswith((".", ":"))

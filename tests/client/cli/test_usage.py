"""Options of every command: an empty value is refused, as it is mostly the unset variable of a script.

With it `--by` would name another person, `--tools` give an agent all tools, and `--workspace` be the directory that one
happens to be in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from plansurvive.client.cli.commands import COMMANDS, imported
from plansurvive.client.cli.terminal.usage import INSTEAD, MAY_BE_EMPTY, ONE, SENTENCES, WITH_BLANKS

OWN_PARSER = ("worker", "codec")


def of(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The command, or those of the group."""
    for below, each in getattr(command, "commands", {}).items():
        yield from of(f"{name} {below}", each)
    if not hasattr(command, "commands"):
        yield name, command


EVERY = {
    name: command
    for first in COMMANDS
    if first not in OWN_PARSER and not COMMANDS[first].missing
    for name, command in of(first, imported(first))
}


def options(command: Any) -> Iterator[Any]:
    return (each for each in command.params if each.param_type_name == "option" and not each.is_flag)


@pytest.mark.parametrize("name", EVERY)
def test_an_empty_value_of_an_option_is_refused_before_anything_else(name: str) -> None:
    command = EVERY[name]
    arguments = [each.name for each in command.params if each.param_type_name == "argument" and each.required]
    for option in options(command):
        flag, others = option.opts[-1], [each for each in options(command) if each.required and each is not option]
        given = [*arguments, *(word for each in others for word in (each.opts[-1], "a.b=c")), flag, " "]
        if flag in MAY_BE_EMPTY:
            assert command.make_context(name, given).params[option.name] == " "
            continue
        or_none = "" if option.required else ", or leave it out"
        expected = f"{flag} is empty; write {flag} {option.metavar or 'VALUE'}{or_none}"
        with pytest.raises(Exception, match=f"^{re.escape(expected)}$"):
            command.make_context(name, given)


def test_the_tables_name_what_commands_have() -> None:
    flags = {each.opts[-1] for command in EVERY.values() for each in options(command)}
    metavars = {each.metavar for command in EVERY.values() for each in options(command)}
    arguments = {each.metavar for command in EVERY.values() for each in command.params if not hasattr(each, "is_flag")}
    assert flags >= MAY_BE_EMPTY
    assert WITH_BLANKS.keys() <= metavars
    assert arguments >= SENTENCES
    assert ONE.keys() <= arguments
    assert INSTEAD.keys() <= EVERY.keys()

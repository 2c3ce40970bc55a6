"""The description of an agent's call, made of what it calls: so that of one whose approver changed it follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 200
"""Characters of a description."""


def call_title(tool: str, args: Mapping[str, Any]) -> str:
    """A call in a few words: its tool, and the file that it names."""
    path = args.get("path")
    return f"{tool} {path}"[:LONGEST] if isinstance(path, str) else tool[:LONGEST]


def command_title(command: str) -> str:
    """A command in one line."""
    return " ".join(command.split())[:LONGEST]


def retitled(description: str, tool: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The description of a call whose arguments are others now; as it was, if it was not made of them."""
    if description == call_title(tool, before):
        return call_title(tool, now)
    commands = before.get("command"), now.get("command")
    if isinstance(commands[0], str) and isinstance(commands[1], str) and description == command_title(commands[0]):
        return command_title(commands[1])
    return description

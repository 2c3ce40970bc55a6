"""Plans whose steps write a line each, so that what they did can be counted afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.compose.stack import Stack
from tests.kit.waiting import until

STEPS = 16


def chain(name: str, *, asks: bool = False, seconds: float = 0.3) -> dict[str, Any]:
    """A plan of steps one after another; with `asks`, the first waits for a person."""
    first = [{"id": "gate", "tool": "run_command", "args": {"command": "true"}}] if asks else []
    steps = [
        {
            "id": f"s{number}",
            "tool": "run_command",
            "requiresApproval": False,
            "args": {"command": f"echo {number} >> {name}.ledger; sleep {seconds}"},
            "dependsOn": [f"s{number - 1}"] if number else ["gate"] if asks else [],
        }
        for number in range(STEPS)
    ]
    return {"title": f"Chain {name}", "id": name, "workspace": "/workspace", "steps": first + steps}


def done(stack: Stack, name: str) -> list[int]:
    """The numbers of the steps that ran, in order, with those that ran twice."""
    file = stack.workspace / f"{name}.ledger"
    return [int(row) for row in file.read_text().split()] if file.exists() else []


async def until_done(stack: Stack, name: str, count: int) -> None:
    """Wait until so many steps have run."""
    await until(lambda: len(set(done(stack, name))) >= count, f"{count} steps of {name} ran", patience=240)


def assert_whole(stack: Stack, name: str, *, doubled: int) -> int:
    """Every step ran, in order, and at most so many twice; how many did."""
    ran = done(stack, name)
    assert sorted(set(ran)) == list(range(STEPS))
    assert ran == sorted(ran)
    assert len(ran) - STEPS <= doubled, ran
    return len(ran) - STEPS


def owned(path: Path) -> tuple[int, int]:
    """User and group of a file."""
    status = path.stat()
    return status.st_uid, status.st_gid

"""Controls: for each defence the same attack with it and without it. Without it the checker must find what it prevents.

What is taken away is never a part of the engine's code: it is a file, a setting, or the tool that a plan calls.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.chaos.checker.rules import DOUBLED, LOST, SILENT
from tests.chaos.faults import command as faulty
from tests.chaos.night.bricks import Brick, Draft, adds
from tests.chaos.night.new_code import FIRST
from tests.chaos.night.plans import Planned, of_brick
from tests.chaos.night.rounds import Setup
from tests.chaos.night.storm import Storm
from tests.kit.waiting import until

LATE = 4.0
"""Seconds that a call takes after its effect: time enough to kill it there."""
TORN = "text\n" * 8_000
STUCK_SECONDS = 20.0
"""How long plans are waited for that will not end."""

Attack = Callable[[Storm, bool], Awaitable[None]]


@dataclass(frozen=True)
class Control:
    """A defence. `brick` and `attack` are given whether it is there."""

    brick: Callable[[bool], Brick]
    attack: Attack
    finds: str
    """What the checker must find without it."""
    workers: int = 1
    in_memory: bool = False
    """Without the defence, the server keeps its data in memory."""
    needs_disk: bool = False

    def setup(self, folder: Path, temporal: Path, is_there: bool, has_disk: bool) -> Setup:
        """A round of it."""
        return Setup(
            folder, temporal, has_disk,
            seconds=1.0, calm=120.0 if is_there else STUCK_SECONDS, workers=self.workers,
            is_durable=is_there or not self.in_memory,
            plans=partial(_plans, self.brick(is_there)),
            attack=lambda storm: self.attack(storm, is_there),
        )  # fmt: skip


def _plans(brick: Brick, workspace: Path) -> Sequence[Planned]:
    return of_brick(brick, workspace)


def one_edit(_: bool) -> Brick:
    """An edit of a file."""

    def brick(draft: Draft, name: str, needs: list[str]) -> str:
        draft.steps.append({"id": name, **adds(draft.log(name, name), name), "dependsOn": needs})
        return name

    return brick


def timers(_: bool) -> Brick:
    """Two timers with an edit after each."""

    def brick(draft: Draft, name: str, needs: list[str]) -> str:
        path = draft.log(name, "0", "1")
        for number in range(2):
            before = [f"e{number - 1}"] if number else needs
            draft.steps.append({"id": f"t{number}", "tool": "sleep", "args": {"seconds": 6.0}, "dependsOn": before})
            draft.steps.append({"id": f"e{number}", **adds(path, str(number)), "dependsOn": [f"t{number}"]})
        return "e1"

    return brick


def late_command(is_there: bool) -> Brick:
    """A command that takes its time after its effect. The defence: it says that it must not be repeated."""

    def brick(draft: Draft, name: str, needs: list[str]) -> str:
        log, doubt = f"{draft.name}/{name}.ledger", draft.log("doubt", kind="at_most")
        draft.promise["at_most"] = {log: [name], doubt: ["in doubt"]}
        text = f"echo {name} >> {log}; sleep {LATE}"
        step: dict[str, Any] = {"id": name, "tool": "run_command", "args": {"command": text}}
        step |= {"requiresApproval": False, "repeatable": not is_there}
        step["catch"] = [{"steps": [{"id": "say", **adds(doubt, "in doubt")}]}]
        draft.steps.append(step | {"dependsOn": needs})
        return name

    return brick


def late_entry(is_there: bool) -> Brick:
    """A call that takes its time after its effect. The defence: the service knows the key of the call."""

    def brick(draft: Draft, name: str, needs: list[str]) -> str:
        args = {"path": draft.ledger(name, name), "line": name, "after": LATE}
        draft.steps.append({"id": name, "tool": "enter" if is_there else "append", "args": args, "dependsOn": needs})
        return name

    return brick


def written(is_there: bool) -> Brick:
    """A file. The defence: `write_file` writes it whole, and fails when it cannot."""

    def brick(draft: Draft, name: str, needs: list[str]) -> str:
        path = draft.file(name, TORN)
        step: dict[str, Any] = {"id": name, "tool": "write_file", "args": {"path": path, "content": TORN}}
        if not is_there:
            step |= {"tool": "scribble", "args": {"path": path, "text": TORN}}
        draft.steps.append(step | {"dependsOn": needs})
        return name

    return brick


async def dies_after_the_effect(storm: Storm, is_there: bool) -> None:
    """The worker dies after the effect of the first attempt. The defence: the effect log."""
    worker = storm.stand.workers[0]
    worker.kill()
    normal, worker.command = worker.command, faulty("edit_file:after_effect", "kill")
    worker.start()
    worker.is_wanted = False
    await until(lambda: not worker.is_running, "the worker has died")
    for path in [] if is_there else storm.stand.state.rglob("log.*"):
        path.unlink()
    worker.command = normal


async def killed_after_the_effect(storm: Storm, is_there: bool) -> None:
    """kill -9 of the worker once the effect is there."""
    await _effect(storm)
    await storm.kill("kill a worker", storm.stand.workers[0])


async def frozen_after_the_effect(storm: Storm, is_there: bool) -> None:
    """A zombie: the worker is frozen once the effect is there, and wakes up when another has done the step again."""
    first, second = storm.stand.workers
    second.kill()
    await _effect(storm)
    first.send(signal.SIGSTOP)
    second.start()
    await asyncio.sleep(LATE + 10.0)
    first.send(signal.SIGCONT)


async def server_killed(storm: Storm, is_there: bool) -> None:
    """kill -9 of the server while a plan runs. The defence: its data are on disk."""
    await until(lambda: storm.stand.workers[0].log.read_text().count("Listening"), "the worker listens")
    await asyncio.sleep(2.0)
    await storm.kill("kill the server", storm.stand.parts["server"])


async def new_code(storm: Storm, is_there: bool) -> None:
    """New code while a plan runs. The defence: what is new in the workflow is behind `workflow.patched`."""
    await until(lambda: storm.stand.workers[0].log.read_text().count("Listening"), "the worker listens")
    await asyncio.sleep(3.0)
    await storm.deploy(is_patched=is_there, method=FIRST)


async def never_comes_back(storm: Storm, is_there: bool) -> None:
    """The worker is killed. The defence: something starts it again."""
    worker = storm.stand.workers[0]
    await until(lambda: worker.log.read_text().count("Listening"), "the worker listens")
    await storm.kill("kill a worker", worker)
    if not is_there:
        worker.kill()
        del storm.stand.parts["worker0"]


async def disk_full(storm: Storm, is_there: bool) -> None:
    """The disk is full while a file is written, and has space again later."""
    disk = storm.stand.disk
    disk.fill(disk.workspace)
    await until(lambda: storm.stand.workers[0].log.read_text().count("Listening"), "the worker listens")
    await asyncio.sleep(8.0)


async def _effect(storm: Storm) -> None:
    await until(lambda: any(path.stat().st_size for path in storm.stand.workspace.rglob("*.ledger")), "the effect")


CONTROLS = {
    "effect log": Control(one_edit, dies_after_the_effect, DOUBLED),
    "calls that are never repeated": Control(late_command, killed_after_the_effect, DOUBLED),
    "keys of calls": Control(late_entry, killed_after_the_effect, DOUBLED),
    "keys of calls against zombies": Control(late_entry, frozen_after_the_effect, DOUBLED, workers=2),
    "the server's data on disk": Control(timers, server_killed, LOST, in_memory=True),
    "patches in workflows": Control(timers, new_code, LOST),
    "workers that are started again": Control(timers, never_comes_back, LOST),
    "files written whole": Control(written, disk_full, SILENT, needs_disk=True),
}

"""What random plans are made of: steps whose effects can be counted afterwards, with what they promise.

Most effects are lines that `edit_file` adds before the last line of a file: nothing in such a call shows that it was
made before, so it is the engine that must see to it that it happens once.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.checker.record import ANCHOR
from tests.chaos.night.tools import text_of

Step = dict[str, Any]
RETRY = {"attempts": 100, "delay": 0.5, "factor": 1}
"""A disk that is full for a while fails calls, which must then go on being tried: the plans are to complete.

A plan as a step does not inherit the defaults of the plan above, so its steps have this of their own.
"""


@dataclass
class Draft:
    """A plan in the making, and what it promises (`tests.chaos.checker.record.Promise`)."""

    name: str
    chance: random.Random
    steps: list[Step] = field(default_factory=list)
    laid: list[str] = field(default_factory=list)
    """Files that are there before it starts, with nothing but the anchor."""
    ledgers: list[str] = field(default_factory=list)
    """Empty files that are there before it starts."""
    promise: dict[str, Any] = field(default_factory=dict)
    asks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By step, what a person does about it: the name of a signal and its argument."""
    objectives: list[str] = field(default_factory=list)
    """Names of agents, for the script of the LLM."""

    def log(self, name: str, *lines: str, kind: str = "listed") -> str:
        """A file that lines are added to, and the lines it must have in the end; returns its path."""
        path = f"{self.name}/{name}.log"
        self.laid.append(path)
        self.promise.setdefault(kind, {})[path] = list(lines)
        return path

    def ledger(self, name: str, *lines: str) -> str:
        """A ledger, and the lines it must have in the end; returns its path."""
        path = f"{self.name}/{name}.ledger"
        self.ledgers.append(path)
        self.promise.setdefault("any_order", {})[path] = list(lines)
        return path

    def file(self, name: str, text: str) -> str:
        """A file that is made, with its content; returns its path."""
        path = f"{self.name}/{name}.txt"
        self.promise.setdefault("files", {})[path] = text
        return path


Brick = Callable[[Draft, str, list[str]], str]
"""Adds steps whose first ones need the given steps, and returns the id of the last one."""


def adds(path: str, line: str, **more: Any) -> Step:
    """A call that adds a line."""
    return {"tool": "edit_file", "args": {"path": path, "oldText": ANCHOR, "newText": f"{line}\n{ANCHOR}"}, **more}


def edits(draft: Draft, name: str, needs: list[str]) -> str:
    """Some edits of one file, one after the other."""
    count = draft.chance.randint(1, 4)
    path = draft.log(name, *(f"{name} {number}" for number in range(count)))
    for number in range(count):
        before = [f"{name}-{number - 1}"] if number else needs
        draft.steps.append({"id": f"{name}-{number}", **adds(path, f"{name} {number}"), "dependsOn": before})
    return f"{name}-{count - 1}"


def enters(draft: Draft, name: str, needs: list[str]) -> str:
    """A call of a service that knows keys; it takes its time."""
    args = {"path": draft.ledger(name, name), "line": name, "seconds": round(draft.chance.uniform(0.1, 2.0), 1)}
    draft.steps.append({"id": name, "tool": "enter", "args": args, "dependsOn": needs})
    return name


def approved(draft: Draft, name: str, needs: list[str]) -> str:
    """An edit that a person approves."""
    step = adds(draft.log(name, name), name, requiresApproval=True)
    draft.steps.append({"id": name, **step, "dependsOn": needs})
    draft.asks[name] = {"signal": "approve", "argument": {"stepId": name, "by": "ann"}}
    return name


def asked(draft: Draft, name: str, needs: list[str]) -> str:
    """A question, and a file with the answer."""
    answer = f"answer-{draft.chance.randrange(1000)}"
    path = draft.file(name, answer)
    draft.steps += [
        {"id": f"{name}-q", "tool": "ask", "args": {"question": "Which one?"}, "dependsOn": needs},
        {"id": name, "tool": "write_file", "args": {"path": path, "content": f"${name}-q"}},
    ]
    draft.steps[-1]["args"]["content"] = f"{{{{{name}-q}}}}"
    draft.asks[f"{name}-q"] = {"signal": "answer", "argument": {"stepId": f"{name}-q", "value": answer, "by": "bob"}}
    return name


def told(draft: Draft, name: str, needs: list[str]) -> str:
    """An event that is waited for, then an edit."""
    event = f"{draft.name}.{name}"
    draft.steps += [
        {"id": f"{name}-w", "tool": "wait_for", "args": {"event": event}, "dependsOn": needs},
        {"id": name, **adds(draft.log(name, name), name), "dependsOn": [f"{name}-w"]},
    ]
    draft.asks[f"{name}-w"] = {"signal": "event", "argument": {"name": event, "data": {"n": 1}}}
    return name


def timed(draft: Draft, name: str, needs: list[str]) -> str:
    """A timer, then an edit."""
    seconds = round(draft.chance.uniform(0.5, 5.0), 1)
    draft.steps += [
        {"id": f"{name}-t", "tool": "sleep", "args": {"seconds": seconds}, "dependsOn": needs},
        {"id": name, **adds(draft.log(name, name), name), "dependsOn": [f"{name}-t"]},
    ]
    return name


def mapped(draft: Draft, name: str, needs: list[str]) -> str:
    """A loop over a list; each item edits a file of its own. Some loops run in child plans."""
    items = [f"i{number}" for number in range(draft.chance.randint(2, 9))]
    for item in items:
        draft.log(f"{name}-{item}", f"{name} {item}")
    rule: dict[str, Any] = {"items": items, "key": "@", "maxParallel": draft.chance.randint(1, 4)}
    if draft.chance.random() < 0.3:
        rule |= {"mode": "plans", "batch": 3, "maxParallel": 3}
    path = f"{draft.name}/{name}-{{{{item}}}}.log"
    draft.steps.append({"id": name, "forEach": rule, **adds(path, f"{name} {{{{item}}}}"), "dependsOn": needs})
    return name


def repeated(draft: Draft, name: str, needs: list[str]) -> str:
    """Rounds, until a number is reached."""
    rounds = draft.chance.randint(2, 4)
    path = draft.ledger(name, *(f"{name} {number}" for number in range(1, rounds + 1)))
    args = {"path": path, "line": f"{name} {{{{round}}}}", "number": "$round"}
    until = {"until": f"number >= `{rounds}`", "limit": 10, "delay": 0.1}
    draft.steps.append({"id": name, "tool": "enter", "args": args, "repeat": until, "dependsOn": needs})
    return name


def nested(draft: Draft, name: str, needs: list[str]) -> str:
    """A plan as a step."""
    path = draft.log(name, f"{name} a", f"{name} b")
    first = {"id": "a", **adds(path, f"{name} a"), "retry": RETRY}
    inner = [first, {"id": "b", **adds(path, f"{name} b"), "retry": RETRY, "dependsOn": ["a"]}]
    draft.steps.append({"id": name, "tool": "plan", "args": {"steps": inner}, "dependsOn": needs})
    return name


def agent(draft: Draft, name: str, needs: list[str]) -> str:
    """An agent that makes one call and answers."""
    full = f"{draft.name}-{name}"
    draft.promise.setdefault("any_order", {})[f"{draft.name}/{name}.ledger"] = [full]
    draft.ledgers.append(f"{draft.name}/{name}.ledger")
    draft.objectives.append(full)
    args = {"objective": f"Enter {full}.", "tools": ["enter"]}
    draft.steps.append({"id": name, "tool": "agent", "args": args, "dependsOn": needs})
    return name


def command(draft: Draft, name: str, needs: list[str]) -> str:
    """A command that must not run twice; if nobody knows whether it ran, the plan says so in another file."""
    log, doubt = f"{draft.name}/{name}.out", f"{draft.name}/{name}-doubt.log"
    draft.laid.append(doubt)
    draft.promise.setdefault("at_most", {}).update({log: [name], doubt: ["in doubt"]})
    draft.promise.setdefault("either", []).append([log, doubt])
    text = f"sleep {draft.chance.uniform(0.0, 1.5):.1f}; echo {name} >> {log}"
    step: Step = {"id": name, "tool": "run_command", "args": {"command": text}, "repeatable": False}
    step |= {"requiresApproval": False, "catch": [{"steps": [{"id": "say", **adds(doubt, "in doubt")}]}]}
    draft.steps.append(step | {"dependsOn": needs})
    return name


def copied(draft: Draft, name: str, needs: list[str]) -> str:
    """A value too large for a history, and a file made of it."""
    size = draft.chance.choice([9_000, 40_000, 90_000])
    path = draft.file(name, text_of(name, size))
    draft.steps += [
        {"id": f"{name}-b", "tool": "blob", "args": {"name": name, "size": size}, "dependsOn": needs},
        {"id": name, "tool": "write_file", "args": {"path": path, "content": f"${name}-b"}},
    ]
    return name


BRICKS: tuple[Brick, ...] = (
    edits, enters, approved, asked, told, timed, mapped, repeated, nested, agent, command, copied,
)  # fmt: skip

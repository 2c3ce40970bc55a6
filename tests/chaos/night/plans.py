"""Random plans: a graph of bricks, and an end. From a seed alone, the same plans again."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.chaos.checker.record import ANCHOR
from tests.chaos.night.bricks import BRICKS, RETRY, Brick, Draft, adds

ENDS = ("plain", "plain", "finally", "refused", "rollback")


class Planned(NamedTuple):
    """A plan to start."""

    workflow: str
    plan: dict[str, Any]
    promise: dict[str, Any]
    asks: dict[str, dict[str, Any]]
    objectives: list[str]


def planned(seed: int, number: int, workspace: Path) -> Planned:
    """The plan of that number; lays its files into the workspace."""
    chance = random.Random(f"{seed} {number}")
    draft = Draft(f"p{number:03}", chance)
    last: list[str] = []
    for place in range(chance.randint(2, 5)):
        needs = chance.sample(last, min(len(last), chance.randint(0, 2)))
        last.append(chance.choice(BRICKS)(draft, f"s{place}", needs))
    plan: dict[str, Any] = {"title": f"Night {seed}", "defaults": {"retry": RETRY}, "steps": draft.steps}
    _end(draft, plan, chance.choice(ENDS), last)
    workflow = f"plan-night-{seed}-{number}"
    _lay(draft, workspace)
    return Planned(workflow, plan, draft.promise | {"workflow": workflow}, draft.asks, draft.objectives)


def of_brick(brick: Brick, workspace: Path) -> list[Planned]:
    """One plan of one brick."""
    draft = Draft("p000", random.Random(0))
    brick(draft, "s0", [])
    _lay(draft, workspace)
    plan = {"defaults": {"retry": RETRY}, "steps": draft.steps}
    return [Planned("plan-control", plan, draft.promise | {"workflow": "plan-control"}, draft.asks, draft.objectives)]


def waiting(number: int, workspace: Path) -> Planned:
    """A plan that awaits a person's approval of an edit, and has done one before."""
    draft = Draft(f"w{number:04}", random.Random(number))
    path = draft.log("log", "before", "after")
    draft.steps = [
        {"id": "before", **adds(path, "before")},
        {"id": "after", **adds(path, "after", requiresApproval=True), "dependsOn": ["before"]},
    ]
    draft.asks["after"] = {"signal": "approve", "argument": {"stepId": "after", "by": "ann"}}
    _lay(draft, workspace)
    workflow = f"plan-waiting-{number}"
    return Planned(workflow, {"steps": draft.steps}, draft.promise | {"workflow": workflow}, draft.asks, [])


def script(plans: Sequence[Planned]) -> str:
    """The script of the LLM: each agent makes its call, and answers once it is shown the result. A stateless model."""
    exchanges: list[dict[str, Any]] = []
    for plan in plans:
        for name in plan.objectives:
            folder, step = name.split("-")
            args = {"path": f"{folder}/{step}.ledger", "line": name, "seconds": 0.3}
            answer = {"answer": f"{name} is entered", "confidence": "high"}
            call = {"tool_calls": [{"tool": "enter", "args": args}]}
            exchanges.append({"when": f"did {name}", "reply": {"json": answer, "delay": 0.3}, "times": 0})
            exchanges.append({"when": f"Enter {name}.", "reply": {"json": call, "delay": 0.3}, "times": 0})
    return json.dumps({"model": "demo", "exchanges": exchanges})


def _end(draft: Draft, plan: dict[str, Any], kind: str, last: list[str]) -> None:
    """How the plan ends: as it stands, with a step that fails, or with everything taken back."""
    if kind == "finally":
        plan["finally"] = [{"id": "closing", **adds(draft.log("closing", "closing"), "closing")}]
    if kind in ("refused", "rollback"):
        draft.promise |= {"statuses": ["partial"], "failed": {"broken": "NO"}}
    if kind == "rollback":
        plan["rollback"] = True
        path, count = draft.log("undo"), draft.chance.randint(1, 4)
        for number in range(count):
            before = [f"undo-{number - 1}"] if number else last
            step = {"id": f"undo-{number}", **adds(path, f"do {number}"), "dependsOn": before}
            draft.steps.append(step | {"undo": adds(path, f"undo {number}")})
        done, undone = range(count), reversed(range(count))
        draft.promise["listed"][path] = [*(f"do {each}" for each in done), *(f"undo {each}" for each in undone)]
        last = [f"undo-{count - 1}"]
    if kind in ("refused", "rollback"):
        draft.steps.append({"id": "broken", "tool": "refuse", "args": {"code": "NO"}, "dependsOn": last})
        draft.steps.append({"id": "never", **adds(draft.log("never"), "never"), "dependsOn": ["broken"]})


def _lay(draft: Draft, workspace: Path) -> None:
    (workspace / draft.name).mkdir(parents=True)
    for path in draft.laid:
        (workspace / path).write_text(f"{ANCHOR}\n")
    for path in draft.ledgers:
        (workspace / path).touch()

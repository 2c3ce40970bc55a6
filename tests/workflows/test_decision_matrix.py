"""The matrix: each verb of consent over each kind of what is asked, under a rule that wants two of three people.

A cell that means nothing says why. `tests/features/coding_agents/test_consents.py` has a coding agent's permission.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.service import RPCError

from plansurvive.client import runs
from plansurvive.client.runs import Choice, Pending
from plansurvive.plans.editing.edits import SetField
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import Decision, Options
from tests.kit.desks import Desk, Policy
from tests.kit.driving import Plans, Started, work
from tests.kit.waiting import until
from tests.workflows.agents import Serving, call, says, serving
from tests.workflows.conftest import MakeWorker
from tests.workflows.test_consents import cara, policy
from tests.workflows.test_people import ann, bob, page

__all__ = ["ann", "bob", "cara", "page", "policy"]

pytestmark = [pytest.mark.uses("signing", "policy", "children", "agents")]

RULE = 'args.name = "w"\nby = ["ann", "bob"]\ncount = 2\noverride = ["cara"]'
DELEGATION = '[[delegation]]\nfrom = "bob"\nto = "cara"\nuntil = 2100-01-01T00:00:00Z\n'
LIMIT = {"approval": {"timeout": 5}}
"""In process, where nothing else happens, five seconds are over at once."""
STORY = [says({"tool_calls": [call("work", name="w")]}), says({"answer": "done", "confidence": "high"}, times=0)]


def undone(limit: dict[str, Any]) -> dict[str, Any]:
    undo = {"tool": "work", "args": {"name": "w"}}
    breaks = {"id": "breaks", "tool": "refuse", "args": {"code": "BROKEN"}, "dependsOn": ["a"]}
    return {"steps": [work("a", undo=undo), breaks], "rollback": True, "defaults": limit}


KINDS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "a step": lambda limit: {"steps": [work("w", **limit)]},
    "an item": lambda limit: {
        "steps": [{**work("each", args={"name": "{{item}}"}, **limit), "forEach": {"items": ["w"], "key": "@"}}]
    },
    "a child plan": lambda limit: {"steps": [{"id": "c", "tool": "plan", "args": {"steps": [work("w", **limit)]}}]},
    "an undo": undone,
    "an agent's call": lambda _: {"steps": [{"id": "a", "tool": "agent", "args": {"objective": "Work."}}]},
}
"""By what is asked, a plan that asks it; it is given the time limit of its approval."""


@dataclass(frozen=True)
class Scene:
    """A plan that somebody else has started, the one thing that it asks, and the people who decide."""

    plans: Plans
    plan: Started
    item: Pending
    ann: Desk
    bob: Desk
    cara: Desk

    async def decide(self, desk: Desk, *, approved: bool = True, **more: Any) -> Decision:
        """Decide as this person."""
        choice = Choice(step_id=self.item.step_id, by=desk.own.name, **{"digest": self.item.digest, **more})
        return await runs.decide(desk.client, self.item.plan_id, choice, approved=approved)

    async def asked(self, holds: Callable[[Pending], bool] = lambda _: True) -> Pending:
        """What is asked now, once something holds of it."""
        return await asked(self.plans, self.plan, holds)

    async def is_made(self) -> bool:
        """Whether the call was made, once the plan has ended."""
        await self.plan.ended()
        return ["end", "w"] in [line[:2] for line in self.plans.ledger]


async def asked(plans: Plans, plan: Started, holds: Callable[[Pending], bool] = lambda _: True) -> Pending:
    async def look() -> Pending | None:
        try:
            found = [each async for each in runs.pending(plans.client, plan=plan.id) if each.tool == "work"]
        except (PlanError, RPCError):
            return None  # a child has just begun, or the machine is busy
        return found[0] if found and holds(found[0]) else None

    item: Pending = await until(look, "the call of `work` is asked for")
    return item


async def approve(scene: Scene) -> bool:
    assert (await scene.decide(scene.ann)).missing == 1
    item = await scene.asked(lambda item: bool(item.consents[0].decided))
    assert (item.consents[0].missing, runs_for(item)) == (1, ["bob"])
    assert (await scene.decide(scene.bob)).missing == 0
    return await scene.is_made()


def runs_for(item: Pending) -> list[str]:
    """For whom it is to decide."""
    return [name for name, why in item.consents[0].people.items() if not why and "@" not in name]


async def deny(scene: Scene) -> bool:
    await scene.decide(scene.ann)
    await scene.decide(scene.bob, approved=False)
    return await scene.is_made()


async def withdraw(scene: Scene) -> bool:
    await scene.decide(scene.ann)
    await runs.withdraw(scene.ann.client, scene.item.plan_id, scene.item.step_id, by="ann")
    assert (await scene.decide(scene.bob)).missing == 1
    await scene.decide(scene.ann)
    return await scene.is_made()


async def override(scene: Scene) -> bool:
    assert (await scene.decide(scene.cara, override=True, comment="it burns")).override
    return await scene.is_made()


async def delegate(scene: Scene) -> bool:
    assert (await scene.decide(scene.cara)).missing == 1
    assert (await scene.decide(scene.ann)).missing == 0
    return await scene.is_made()


async def edit(scene: Scene) -> bool:
    await scene.decide(scene.ann)
    change = SetField(op="set", step_id=scene.item.step_id, path="args.seconds", value=0.01)
    await runs.edit(scene.cara.client, scene.item.plan_id, [change], by="cara")
    item = await scene.asked(lambda item: item.digest != scene.item.digest and bool(item.consents))
    assert item.consents[0].decided == [], "ann has not seen this call"
    assert (await scene.decide(scene.ann, digest=item.digest)).missing == 1
    await scene.decide(scene.bob, digest=item.digest)
    return await scene.is_made()


async def expire(scene: Scene) -> bool:
    return await scene.is_made()


Verb = Callable[[Scene], Awaitable[bool]]
VERBS: dict[Verb, bool] = {
    approve: True, deny: False, withdraw: True, override: True, delegate: True, edit: True, expire: False,
}  # fmt: skip
"""By verb, whether the call is made in the end."""
NOTHING = {
    (edit, "an undo"): "the undo of a step that has run is not edited",
    (edit, "an agent's call"): "nobody edits what an agent asks for; the plan of an agent is its record",
    (expire, "an agent's call"): "an agent's calls have no time limit: the agent waits",
}
CELLS = [(verb, kind) for verb in VERBS for kind in KINDS if (verb, kind) not in NOTHING]


@pytest.mark.parametrize(
    ("verb", "kind"),
    [
        pytest.param(verb, kind, marks=[] if kind == "a child plan" and verb is approve else [pytest.mark.slow])
        for verb, kind in CELLS
    ],
    ids=[f"{verb.__name__}-{kind}" for verb, kind in CELLS],
)
async def test_each_verb_means_the_same_for_all_that_is_asked(
    idle: Plans, make_worker: MakeWorker, policy: Policy, ann: Desk, bob: Desk, cara: Desk, verb: Verb, kind: str
) -> None:
    policy.rule(RULE, DELEGATION if verb is delegate else "")
    serve: Serving = serving(idle, make_worker)
    async with serve(STORY):
        started = await runs.start(
            idle.client,
            KINDS[kind](LIMIT if verb is expire else {}),
            options=Options(workspace=str(idle.workspace), by="dan"),
            queue=idle.queue,
        )
        plan = Started(idle.client, started.workflow_id)
        if verb is expire:
            item = Pending(plan_id="", step_id="", tool="", kind="", args={})
        else:
            item = await asked(idle, plan, lambda item: bool(item.consents))
        assert await verb(Scene(idle, plan, item, ann, bob, cara)) is VERBS[verb]


def test_each_cell_is_tested_or_says_why_it_means_nothing() -> None:
    assert len(CELLS) + len(NOTHING) == len(VERBS) * len(KINDS)
    assert all(NOTHING.values())

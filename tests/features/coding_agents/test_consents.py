"""A coding agent's permission is decided by the people whom a rule names, as any other call is.

The row of `tests/workflows/test_decision_matrix.py` that needs a real program. Not edited: it is the agent's; without a
time limit: it is held.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.plans.run import Decision, Options
from tests.features.coding_agents.scene import Scene, asked, code
from tests.kit.desks import Desk, Policy
from tests.kit.driving import Plans, Started

pytestmark = pytest.mark.uses("agents", "children", "policy", "signing")

Decide = Callable[..., Awaitable[Decision]]
VERBS = {"approve": "yes", "deny": "no", "withdraw": "yes", "override": "yes", "delegate": "yes"}
"""By verb, which option is selected for the agent in the end."""


@pytest.mark.parametrize("verb", ["approve", *(pytest.param(verb, marks=pytest.mark.slow) for verb in [*VERBS][1:])])
async def test_a_permission_is_decided_by_whom_the_rule_names(
    idle: Plans, scene: Scene, tmp_path: Path, verb: str
) -> None:
    ann, bob, cara = (Desk(scene.client, scene.settings, tmp_path, name) for name in ("ann", "bob", "cara"))
    policy = Policy(scene.settings, ann, bob, cara)
    given = '[[delegation]]\nfrom = "bob"\nto = "cara"\nuntil = 2100-01-01T00:00:00Z\n' if verb == "delegate" else ""
    policy.rule('by = ["ann", "bob"]\ncount = 2\noverride = ["cara"]', given, tool="coding_agent.execute")
    scene.script([{"ask": "make test", "yes": [{"say": "ran"}], "no": [{"say": "not run"}]}])
    async with scene.worker():
        options = Options(workspace=str(idle.workspace), by="dan")
        started = await runs.start(idle.client, {"steps": [code()]}, options=options, queue=idle.queue)
        plan = Started(idle.client, started.workflow_id)
        agent, _ = await asked(plan)
        view = await agent.until(lambda view: any(each.get("consents") for each in view["pending"]), "the rule asks")
        [item] = view["pending"]

        async def decide(desk: Desk, *, approved: bool = True, **more: Any) -> Decision:
            choice = Choice(step_id=item["stepId"], by=desk.own.name, digest=item["digest"], **more)
            return await runs.decide(desk.client, agent.id, choice, approved=approved)

        if verb == "override":
            await decide(cara, override=True, comment="it burns")
        else:
            assert (await decide(cara if verb == "delegate" else ann)).missing == 1
            if verb == "withdraw":
                await runs.withdraw(ann.client, agent.id, item["stepId"], by="ann")
                assert (await decide(ann)).missing == 1
            await decide(ann if verb == "delegate" else bob, approved=verb != "deny")
        await plan.ended()
    assert scene.chosen() == [VERBS[verb]]

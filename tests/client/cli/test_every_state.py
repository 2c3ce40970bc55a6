"""Every command that shows a plan, in every state of the plan and of its steps: each answers, and none with an error.

`plan files` is not among them: it looks by a workflow of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from temporalio.client import Client

from plansurvive.plans.run import PlanStatus, Run, Status
from tests.apps.web.plans.test_every_state import steps_of
from tests.client.cli.command import plan
from tests.client.test_every_view import AWAITED, CHILD, snapshots
from tests.kit.shown import Shown, shown_on
from tests.nightly import sampled

Environ = dict[str, str]
OF_A_PLAN = (
    ("show",), ("show", "--full"), ("show", "--numbered"), ("show", "--json"), ("summary",), ("summary", "--markdown"),
    ("graph",), ("graph", "--dot"), ("pending",), ("pending", "--full"), ("logs",),
)  # fmt: skip
OF_A_STEP = (("show",), ("show", "--all"), ("show", "--json"), ("why",), ("pending",), ("logs",))


async def look(
    environ: Environ,
    plans: Shown,
    number: int,
    run: Run,
    steps: list[str],
    verbs: Sequence[tuple[str, ...]] = OF_A_PLAN,
) -> None:
    """Show a plan in this state with every command, and say of all that failed what they answered."""
    name = f"{environ['PLANS_TASK_QUEUE']}-{number}"  # tests share a server
    run.plan = run.plan.model_copy(update={"id": name})
    await plans.show(name, run)
    commands = [(verb, name, *more) for verb, *more in verbs]
    commands += [(verb, name, step, *more) for verb, *more in OF_A_STEP for step in steps]
    failed: list[tuple[tuple[str, ...], int, str]] = []
    for command in commands:
        ended = await plan(environ, *command)
        if ended.code or not (ended.out + ended.err).strip() or "QUERY_FAILED" in ended.err:
            failed.append((command, ended.code, ended.err[-300:]))
    assert failed == [], run.status


@pytest.mark.parametrize("status", sampled(PlanStatus, 2))
async def test_every_command_shows_every_status_of_a_plan(
    status: PlanStatus, environ: Environ, temporal_client: Client, queue: str
) -> None:
    async with shown_on(temporal_client, queue) as plans:
        for number, run in enumerate(snapshots()):
            run.status = status
            await look(environ, plans, number, run, list(steps_of(run).values())[:2])


@pytest.mark.slow
async def test_every_command_shows_every_state_of_every_step(
    environ: Environ, temporal_client: Client, queue: str
) -> None:
    async with shown_on(temporal_client, queue) as plans:
        number = 0
        for run in snapshots():
            for name in steps_of(run).values():
                state = run.steps[name]
                for status in Status:
                    for awaiting in (None, *AWAITED.get(status, ())):
                        number += 1
                        changed = {"status": status, "awaiting": awaiting, "child": CHILD}
                        run.steps[name] = state.model_copy(update=changed)
                        await look(environ, plans, number, run, [name], (("show",), ("summary",)))
                run.steps[name] = state

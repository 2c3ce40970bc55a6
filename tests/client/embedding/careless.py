"""A workflow of somebody else's, in a module of its own: the sandbox imports it again."""

from __future__ import annotations

from temporalio import workflow

from plansurvive.client.embedding.children import run_plan


@workflow.defn
class Careless:
    """Runs whatever plan it gets."""

    @workflow.run
    async def run(self, plan: dict[str, object]) -> None:
        await run_plan(plan, plan_id=str(plan.pop("named")))

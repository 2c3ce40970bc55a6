"""The command with which the LLM revises a plan: regenerate."""

from __future__ import annotations

from typing import Annotated

import typer

from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.edited import Expect, report
from plansurvive.client.cli.terminal.options import AsJson, By, Id
from plansurvive.client.cli.terminal.session import Connected, author
from plansurvive.client.differences.plan_diff import PlanDiff
from plansurvive.client.differences.plan_rows import plan_rows
from plansurvive.client.ids import plan_id
from plansurvive.client.requests.llm import require_llm_of
from plansurvive.features.planning import verbs
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.revision import Edited


def regenerate(
    plan: Id,
    feedback: Annotated[str, typer.Argument(metavar="FEEDBACK", help="What the LLM should change.")],
    by: By = None,
    expect: Expect = None,
    as_json: AsJson = False,
) -> None:
    """Have the LLM revise the steps that have not started. The plan is in review until `plan begin`."""
    if not feedback.strip():
        raise PlanError("the feedback is empty; say what the LLM should change", "BAD_REQUEST")

    async def ask(here: Connected) -> tuple[Edited, PlanDiff]:
        await require_llm_of(here.client, plan, here.settings, own_worker=here.keeps_worker)
        return await verbs.regenerated(here.client, plan, feedback, expect_version=expect, by=author(by))

    found, diff = session.run(ask, starts=True)
    report(plan, found, as_json, None if as_json else plan_rows(diff) or ["No changes."])
    if not as_json:
        name = plan_id(plan)
        output.say(f"The plan is in review.\n  review  plan review {name}\n  begin   plan begin {name}")

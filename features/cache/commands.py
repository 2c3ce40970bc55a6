"""The command `plan why`: why a step waits, failed or was skipped, what made its tool run, whose result it has."""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio.client import Client

from plansurvive.client import end_records
from plansurvive.client.children.naming import located, run_of
from plansurvive.client.cli.terminal import output, session
from plansurvive.client.cli.terminal.options import AsJson, Id, Step
from plansurvive.client.live.in_flight import in_flight
from plansurvive.client.live.steps import by_step, in_words, with_blocks
from plansurvive.client.rpc import about, describe
from plansurvive.client.unserved import unserved
from plansurvive.features.cache.views import Why
from plansurvive.features.cache.views import why as answered
from plansurvive.plans.run import Status
from plansurvive.plans.step_state import DONE


def why(
    plan: Id,
    step: Step,
    as_json: AsJson = False,
) -> None:
    """Show why a step waits, runs, failed or was skipped."""
    found = session.run(lambda here: why_of(here.client, plan, step))
    if as_json:
        output.show_json(found.model_dump(mode="json"))
    else:
        output.show_rows(found.text)


async def why_of(client: Client, plan: str, step_id: str) -> Why:
    """Asked of the plan, or read from its record; a step of a child plan by its path. Raises Refused UNKNOWN_STEP."""
    plan, step_id = await located(client, plan, step_id)
    with about(plan):
        ended = await end_records.run_of_ended(client, plan)
    run = ended or await run_of(client, plan)
    found = answered(run, step_id)
    if ended is not None or step_id not in run.steps or run.steps[step_id].status in DONE:
        return found
    first, *others = found.causes
    # What the plan does not know of: whether a worker serves it, and what its step is at.
    said = await unserved(client, run.plan, (await describe(client, plan)).task_queue)
    if run.steps[step_id].status is Status.RUNNING:
        live = with_blocks(by_step(await in_flight(client, plan))).get(step_id)
        said += [f"now: {in_words(live, datetime.now(UTC))}"] if live is not None and not live.is_plain else []
    return found.model_copy(update={"causes": [first.model_copy(update={"reasons": [*first.reasons, *said]}), *others]})

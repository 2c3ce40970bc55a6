"""What becomes of a call whose limit is used up: it waits beyond the attempts it was allowed, if the server can lift
their number. Where it cannot, the step fails with LIMIT_REACHED before the tool is called, and says what to do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.tools.tool import no_fault
from plansurvive.features.limits.admission import Admissions
from plansurvive.features.limits.in_worker import Worker as LimitsInWorker
from plansurvive.features.limits.model import workflow_id
from plansurvive.runtime.settings import Settings
from tests.activities import one_step
from tests.activities.attempts import Attempts
from tests.kit.driving import terminated
from tests.kit.ledger_tools import stamp
from tests.kit.waiting import until


@pytest_asyncio.fixture
async def limits(temporal_client: Client, settings: Settings) -> AsyncIterator[Admissions]:
    """One call an hour."""
    (settings.state_dir / "limits.toml").write_text('[tools.stamp]\nrate = "1/hour"\n')
    found = LimitsInWorker(temporal_client, settings, no_fault).layer([])
    assert isinstance(found, Admissions)
    yield found
    await terminated(temporal_client, workflow_id(settings.task_queue))


async def cannot(_: activity.Info) -> bool:
    """A server that does not let a worker change an activity's options, as those before 1.27."""
    return False


def calls_made(workspace: Path) -> list[str]:
    """The names of the calls that began."""
    rows = [line.split() for line in (workspace / "ledger.txt").read_text().splitlines()]
    return [name for _, name in rows if not name.startswith("-")]


async def test_where_the_server_cannot_lift_the_attempts_the_last_one_fails_with_what_to_do(
    temporal_client: Client, queue: str, attempts: Attempts, limits: Admissions
) -> None:
    site = ToolEnvironment(layers=[limits], lift=cannot)
    parts = [stamp], attempts.values, attempts.effects
    async with one_step.worker(temporal_client, queue, *parts, site=site, eager=False):
        first = await one_step.start(temporal_client, queue, "stamp", attempts.call({"name": "first"}), attempts=1)
        assert (await first.result()).value == "first"
        second = await one_step.start(temporal_client, queue, "stamp", attempts.call({"name": "second"}), attempts=1)
        with pytest.raises(WorkflowFailureError) as caught:
            await second.result()
    assert isinstance(caught.value.cause, ActivityError)
    error = caught.value.cause.cause
    assert isinstance(error, ApplicationError)
    assert (error.type, error.details[0]["code"]) == ("LIMIT_REACHED", "LIMIT_REACHED")
    assert error.message.startswith("waits for the limit of tools.stamp: ")
    assert error.message.endswith("the server allows no further attempt, so resume the plan later")
    assert calls_made(attempts.workspace) == ["first"]


@pytest.mark.parametrize("eager", [True, False])
async def test_where_it_can_the_call_waits_for_more_attempts_than_it_was_allowed(
    temporal_client: Client, queue: str, attempts: Attempts, limits: Admissions, eager: bool
) -> None:
    site = ToolEnvironment(layers=[limits])
    parts = [stamp], attempts.values, attempts.effects
    async with one_step.worker(temporal_client, queue, *parts, site=site, eager=eager):
        first = await one_step.start(temporal_client, queue, "stamp", attempts.call({"name": "first"}), attempts=1)
        await first.result()
        second = await one_step.start(temporal_client, queue, "stamp", attempts.call({"name": "second"}), attempts=1)

        async def waits() -> bool:
            found = (await second.describe()).raw_description.pending_activities
            return any(each.attempt > 1 and each.maximum_attempts == 0 for each in found)

        await until(waits, "a second attempt is due, although one was allowed")
        await second.terminate()
    assert calls_made(attempts.workspace) == ["first"]

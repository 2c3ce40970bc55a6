"""The review screen where certain people must approve: how far it is, taking a decision back, approving alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import Client

from plansurvive.activities.tools.registry import load_tools
from plansurvive.client import runs
from plansurvive.client.decisions import Choice, decide
from plansurvive.plans.run import Options
from plansurvive.runtime.settings import Settings
from plansurvive.worker import build
from tests.apps.review.conftest import WRITE, Screen, screen_of
from tests.kit.desks import Desk, Policy
from tests.kit.driving import Started

pytestmark = [pytest.mark.slow, pytest.mark.sampled, pytest.mark.uses("signing", "policy")]

RULE = 'by = ["ann", "bob", "cara"]\ncount = 3\noverride = ["bob"]'


async def read_and_confirmed(screen: Screen) -> None:
    """The call in full lies over the plan, and its end is on the screen."""
    await screen.until_shown("Read all of it first")
    await screen.pilot.pause()
    await screen.press("y")


async def test_one_of_three_is_shown_taken_back_and_overridden(
    temporal_client: Client, settings: Settings, tmp_path: Path, workspace: Path
) -> None:
    ann, bob, cara = (Desk(temporal_client, settings, tmp_path, name) for name in ("ann", "bob", "cara"))
    Policy(settings, ann, bob, cara).rule(RULE, tool="write_file")
    async with build(temporal_client, settings, load_tools(()), indexed=True):
        options = Options(workspace=str(workspace), by="dan")
        begun = await runs.start(temporal_client, {"steps": [WRITE]}, options=options, queue=settings.task_queue)
        plan = Started(temporal_client, begun.workflow_id)
        await plan.until_asked("write")
        await decide(ann.client, begun.plan_id, Choice(step_id="write", by="ann"), approved=True)
        async with screen_of(bob.client, settings, begun.plan_id, (100, 40)) as screen:
            await screen.choose("write")
            await screen.until(lambda: "1 of 3, by ann at" in " ".join(screen.text.split()), "how far it is")
            assert "bob and cara must approve" in " ".join(screen.text.split())
            screen.app.reading_seconds = 0.0
            await screen.press("y")
            await read_and_confirmed(screen)
            await screen.until(lambda: "1 more must approve it" in screen.said, "it is not enough")
            await screen.until(lambda: "2 of 3" in screen.text, "two of three")
            await screen.press("W")
            await screen.until(lambda: "was withdrawn by bob" in screen.said, "it is taken back")
            await screen.until(lambda: "1 of 3" in screen.text, "one of three")
            assert not (workspace / "a.txt").exists()
            await screen.press("O")
            await read_and_confirmed(screen)
            await screen.until_shown("Why now?")
            await screen.type("it burns")
            await screen.press("enter")
            await screen.until(lambda: "approved by bob alone" in screen.said, "it is overridden")
            await screen.until_status("completed")
    assert (workspace / "a.txt").read_text() == "one\ntwo"

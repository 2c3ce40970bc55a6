"""The end of a plan: its record, and that the plan ends even if the record cannot be stored."""

from __future__ import annotations

import pytest

from tests.driving import Plans, work
from tests.workflows.conftest import MakeWorker
from tests.workflows.failing import failing


@pytest.mark.modes("plain")
async def test_a_record_that_cannot_be_kept_keeps_no_plan_from_ending(idle: Plans, make_worker: MakeWorker) -> None:
    async with make_worker(client=failing(idle.client, lambda name, _: name == "record_end")):
        plan = await idle.start([work("a")])
        summary = await plan.handle.result()
        assert (summary["status"], summary["counts"]["completed"]) == ("completed", 1)
        await plan.until_logged("warning", "SUMMARY.md could not be written: the disk is gone")

"""Schedules on the web page, each action as the command of that name does it."""

from __future__ import annotations

import pytest
from temporalio.worker import Worker

from plansurvive.apps.schedules.views import show_schedule
from tests.apps.web.visiting import Visitor
from tests.apps.web.visiting import visitor as visitor

PLAN = "title: Look\nsteps:\n  - {id: look, tool: list_directory}\n"


@pytest.mark.slow
@pytest.mark.in_turn
async def test_a_schedule_is_made_shown_changed_triggered_paused_resumed_and_deleted(
    visitor: Visitor, worker: Worker
) -> None:
    name = f"nightly-{visitor.service.settings.task_queue}"
    assert "Run it at set times" in await visitor.post("/schedules/new", {"text": PLAN}, 200)
    fields = {"text": PLAN, "name": name, "do": "create", "timezone": "Europe/Berlin", "overlap": "buffer"}
    refused = await visitor.post("/schedules/new", {**fields, "cron": "7 7"}, 422)
    assert "does not have 5 fields" in refused
    page = await visitor.post("/schedules/new", {**fields, "cron": "0 7 * * mon-fri", "note": "for the morning"})
    assert "at 07:00 on Monday to Friday" in page
    assert "for the morning" in page
    assert name in await visitor.get("/schedules")
    made = await show_schedule(visitor.client, name)
    assert (made.overlap, made.by, made.source, made.title) == ("buffer", "ann", "<pasted>", "Look")
    here = f"/schedules/{name}"
    assert "at 08:00" in await visitor.post(f"{here}/update", {"cron": "0 8 * * *", "timezone": "UTC"})
    assert "Started nightly-" in await visitor.post(f"{here}/trigger", {})
    assert "paused by ann" in await visitor.post(f"{here}/pause", {})
    assert (await show_schedule(visitor.client, name)).paused
    await visitor.post(f"{here}/resume", {"note": "again"})
    assert not (await show_schedule(visitor.client, name)).paused
    made_up = await visitor.post(f"{here}/backfill", {"from": "2026-01-05T00:00", "to": "2026-01-05T23:00", "how": ""})
    assert "1 run to make up for" in made_up
    assert "No schedules yet" in await visitor.post(f"{here}/delete", {}) or name not in await visitor.get("/schedules")

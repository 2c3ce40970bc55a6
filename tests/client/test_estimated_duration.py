"""The duration that a plan's author estimates is shown beside the one that it has taken, wherever a plan is shown."""

from __future__ import annotations

import io
from datetime import timedelta

from rich.console import Console

from plansurvive.apps.review.rows import heading
from plansurvive.client.cli.follow.board import board
from plansurvive.features.planning.make import rows_of
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.views import queries
from plansurvive.plans.views.models import BriefView, PlanView
from tests.plans.building import NOW, completed, run_of, step


def test_an_estimate_is_beside_what_a_plan_took() -> None:
    run = run_of(step("a"), estimated_duration=120)
    schedule = Schedule(run)
    review = PlanView.read(queries.view(run, [], schedule))
    assert "(version 1, estimated 2:00)" in rows_of(review)[1]
    assert "estimated 2:00" in heading(review, 100).plain
    schedule.begin(NOW)
    schedule.start("a", NOW)
    schedule.settle("a", completed(), NOW + timedelta(seconds=65))
    schedule.end(NOW + timedelta(seconds=65))
    assert ", in 65.0 s, estimated 120 s" in queries.text(run, [{"detailed": True}])
    shown = BriefView.read(queries.view(run, [{"brief": True}], schedule))
    file = io.StringIO()
    console = Console(file=file, width=100)
    console.print(board(shown, NOW, 10))
    assert "1:05 (estimated 2:00)" in file.getvalue()

"""What is wrong with a schedule is said in the words of the form."""

from __future__ import annotations

from plansurvive.apps.schedules.pages import on_the_page
from plansurvive.apps.schedules.spec import BadSchedule
from plansurvive.plans.errors import PlanError


def test_errors_about_a_schedule_name_the_fields_of_the_form() -> None:
    found = on_the_page(BadSchedule("say when it runs: --cron X, --every 1h; --end is not after --start"))
    assert found.message == "say when it runs: “Cron” X, “Every” 1h; “No runs after” is not after “No runs before”"
    assert found.code == "BAD_SCHEDULE"
    assert on_the_page(PlanError("see --cron", "OTHER")).message == "see --cron"

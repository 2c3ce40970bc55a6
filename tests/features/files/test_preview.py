"""What `plan undo` shows of the steps that it would undo."""

from __future__ import annotations

from typing import Any

from plansurvive.features.files.verbs import preview
from tests.plans.building import NOW, begun, completed, step

NOTES: dict[str, Any] = {"tool": "note", "args": {"text": "{{value}}"}}


def test_what_would_undo_a_plan_is_shown_in_its_order_with_the_values_of_the_steps() -> None:
    schedule = begun(step("a", undo=NOTES), step("b", undo=NOTES), step("x"))
    for name in ("a", "b", "x"):
        schedule.start(name, NOW)
        schedule.settle(name, completed(f"v{name}"), NOW)
    schedule.end(NOW)
    calls = preview(schedule.run)
    assert [(call.undo_id, call.args) for call in calls] == [("b.undo", {"text": "vb"}), ("a.undo", {"text": "va"})]
    assert [call.undo_id for call in preview(schedule.run, "a")] == ["a.undo"]

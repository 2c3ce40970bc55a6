"""What activities return has no field with its default: an earlier release rejects those it does not know."""

from __future__ import annotations

import json
from typing import Any

from plansurvive.activities.attempt.compact import Compacted, returned
from plansurvive.plans.activity_io import Return
from tests.kit.driving import Plans, work


async def test_results_say_nothing_that_an_earlier_release_would_assume(plans: Plans) -> None:
    steps: list[dict[str, Any]] = [
        work("a"),
        {"id": "b", "tool": "write_file", "args": {"path": "b.txt", "content": "$a"}},
        {"id": "c", "tool": "run_command", "args": {"command": "cat b.txt"}, "dependsOn": ["b"],
         "requiresApproval": False},
        {"id": "d", "tool": "read_file", "args": {"path": "b.txt"}, "dependsOn": ["c"]},
    ]  # fmt: skip
    plan = await plans.start(steps)
    view = await plan.ended()
    assert view["status"] == "completed", [each.get("result") for each in view["steps"]]
    results = [
        json.loads(event.activity_task_completed_event_attributes.result.payloads[0].data)
        for event in await plan.events()
        if event.HasField("activity_task_completed_event_attributes")
    ]
    assert len(results) == 4
    for found in results:
        assert found == Return.model_validate(found).model_dump(mode="json", exclude_defaults=True)


def test_what_is_no_result_of_ours_is_left_as_it_is() -> None:
    kept = Return(value=1, duration=2.0)
    assert returned(Compacted(kept)) is kept
    assert returned({"value": 1}) == {"value": 1}

"""What a worker of now returns is read by a workflow worker of 1.0.0, which rejects fields that it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from activities.attempt.compact import Compacted, returned
from activities.lifecycle.check_plan import PlanChecker
from plans.activity_io import CheckRequest, Return
from plans.model import Plan
from tests.driving import Plans, work
from tests.plans.building import TOOLS

OF_1_0_0 = {
    "value", "large", "duration", "attempt", "read", "wrote", "deleted", "shared", "sharedWith", "missing", "moreFiles",
    "sandbox", "notes", "warnings", "logs", "checkpoint", "definition", "attempts", "moreAttempts",
}  # fmt: skip
"""The fields of a Return in version 1.0.0."""


async def test_results_have_no_field_that_the_first_release_did_not_know(plans: Plans) -> None:
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
        assert {*found} <= OF_1_0_0, found
        assert "duration" in found
        assert Return.model_validate(found)
        assert None not in found.values(), "what is not there is not said"


def test_facts_of_another_queue_have_none_either(tmp_path: Path) -> None:
    """A plan asks the workers of the queues that its steps are bound to: those may be newer than its own."""
    plan = Plan.model_validate({"steps": [{"id": "n", "tool": "note", "args": {"text": "x"}, "queue": "lab"}]})
    checker = PlanChecker(TOOLS, str(tmp_path), keeps_summaries=True)
    found = checker.check_plan(CheckRequest(plan=plan, queue="lab"))
    assert {*found.model_dump(mode="json", exclude_defaults=True)} <= {
        "problems", "tools", "allTools", "decisionKey", "workspace", "workspaces", "queueTools", "strictApprovals",
        "bindsCalls", "versionsByStep", "firstTurnPatched", "partialFails", "searchAttributes", "workspaceLock",
        "keepsSummaries", "ownFiles", "notify",
    }  # fmt: skip


def test_what_is_no_result_of_ours_is_left_as_it_is() -> None:
    kept = Return(value=1, duration=2.0)
    assert returned(Compacted(kept)) is kept
    assert returned({"value": 1}) == {"value": 1}

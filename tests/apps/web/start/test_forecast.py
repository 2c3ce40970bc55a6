"""`What would happen` on the page that starts plans: what `plan run --dry-run` says, and nothing is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from temporalio.worker import Worker

from tests.apps.web.visiting import Visitor

READ: dict[str, Any] = {"id": "read", "tool": "read_file", "args": {"path": "a.txt"}}
GONE: dict[str, Any] = {"id": "gone", "tool": "delete_file", "args": {"path": "b<i>.txt"}}
STEPS: list[dict[str, Any]] = [
    READ,
    {"id": "edit", "tool": "edit_file", "args": {"path": "a.txt", "oldText": "one", "newText": "$inputs.to"},
     "dependsOn": ["read"]},
    {"id": "sub", "tool": "plan", "args": {"steps": [GONE]}},
]  # fmt: skip
PLAN = json.dumps({"title": "Look first", "inputs": {"to": {"type": "string"}}, "steps": STEPS})


async def started(visitor: Visitor) -> list[str]:
    """The plans of this queue."""
    queue = visitor.service.settings.task_queue
    return [each.id async for each in visitor.client.list_workflows(f"TaskQueue = '{queue}'")]


async def test_what_would_happen_is_shown_with_diffs_and_questions_and_nothing_happens(
    visitor: Visitor, worker: Worker, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b<i>.txt").write_text("two\n")
    before = await started(visitor)
    answer = await visitor.send("/start/plan", {"text": PLAN, "do": "forecast", "input.to": "two & three"})
    text = answer.text
    assert answer.status_code == 200, text
    assert 'id="forecast"' in text
    assert "4 steps run; 1 would wait for a person" in text
    assert "No earlier run is known" in text
    assert '<span class="plus">+two &amp; three</span>' in text
    assert "<code>sub/gone</code>" in text
    assert "It asks: delete_file needs approval by default" in text
    assert "b&lt;i&gt;.txt" in text
    assert "b<i>" not in text
    assert "two &amp; three</textarea>" in text, "what was typed stays"
    assert await started(visitor) == before
    assert (workspace / "a.txt").read_text() == "one\n"


async def test_with_inputs_that_do_not_fit_it_says_so_and_no_more(visitor: Visitor) -> None:
    whole = PLAN.replace('"string"', '"integer"')
    text = await visitor.post("/start/plan", {"text": whole, "do": "forecast", "input.to": "many"}, 422)
    assert "BAD_INPUT" in text
    assert 'id="forecast"' not in text

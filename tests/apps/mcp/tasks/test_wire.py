"""A plan as a task on the wire: pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import HEADER_MISMATCH, CallToolResult, TextContent
from starlette.requests import Request

from plansurvive.apps.mcp.common.capability import check_header
from plansurvive.apps.mcp.tasks.wire import QUICK, SLOW, Task, Times, changed, progress, written
from plansurvive.plans.views.models import BriefView

BEGAN = datetime(2026, 11, 22, 12, tzinfo=UTC)
LATER = BEGAN + timedelta(minutes=5)


def task(status: Any = "working", message: str = "", kept: timedelta | None = None, **more: Any) -> Task:
    """A task that has been running for five minutes."""
    return Task("p", status, message, Times(BEGAN, LATER, kept, LATER - BEGAN), **more)


def brief(**more: Any) -> BriefView:
    """A plan that runs."""
    return BriefView.model_validate({"status": "running", "counts": {"total": 3, "completed": 1}} | more)


def test_a_task_says_when_it_began_and_changed_and_how_long_it_is_kept() -> None:
    seed = task().seed()
    assert (seed["createdAt"], seed["lastUpdatedAt"]) == ("2026-11-22T12:00:00.000Z", "2026-11-22T12:05:00.000Z")
    assert (seed["ttlMs"], seed["pollIntervalMs"]) == (None, SLOW)
    assert task(kept=timedelta(days=1)).seed()["ttlMs"] == 86_400_000
    young = Task("p", "working", "", Times(BEGAN, BEGAN))
    assert young.seed()["pollIntervalMs"] == QUICK
    older = young._replace(times=young.times._replace(age=timedelta(hours=1)))
    assert older.seed()["pollIntervalMs"] == SLOW
    assert not older.differs(young)  # how often to ask is no news
    assert task(message="b").differs(task(message="a"))
    assert written(BEGAN.astimezone()) == "2026-11-22T12:00:00.000Z"


def test_only_what_belongs_to_its_status_is_in_it() -> None:
    result = CallToolResult(content=[TextContent(text="done")], is_error=True)
    given: dict[str, Any] = {"requests": {"k": {}}, "result": result}
    assert (
        task("working", **given).detailed().keys() == task("cancelled", **given).detailed().keys() == set(task().seed())
    )
    assert task("input_required", **given).detailed()["inputRequests"] == {"k": {}}
    assert task("completed", **given).detailed()["result"]["isError"] is True
    failed = task("failed", "lost", **given).detailed()
    assert failed["error"] == {"code": -32603, "message": "lost"}
    assert not {"result", "inputRequests"} & failed.keys()


def test_a_message_cannot_draw_on_a_screen_and_is_bounded() -> None:
    seed = task(message="a\x1b[2J\u202e\n" + "x" * 9_000).seed()
    assert "\x1b" not in seed["statusMessage"]
    assert len(seed["statusMessage"]) <= 2_000


def test_progress_counts_steps_and_names_a_few_that_run() -> None:
    steps = [{"id": f"s{number}", "tool": "sleep", "status": "running"} for number in range(7)]
    assert progress(brief(steps=steps)) == "1 of 3 steps done; running: s0, s1, s2, s3, s4 and 2 more"
    assert progress(brief(status="paused")).endswith("; paused")
    assert progress(brief(status="draft")) == "the LLM writes the plan"


def test_it_changed_when_something_last_happened_in_the_plan() -> None:
    step = {"id": "s", "tool": "sleep", "startedAt": BEGAN.isoformat(), "endedAt": LATER.isoformat()}
    assert changed(brief(steps=[step]), BEGAN) == LATER
    assert changed(brief(), BEGAN) == BEGAN


@pytest.mark.parametrize(("headers", "is_refused"), [([], True), ([b"p"], False), ([b"q"], True)])
def test_a_request_over_http_names_its_task_in_a_header(headers: list[bytes], is_refused: bool) -> None:
    class Context:
        request = Request({"type": "http", "headers": [(b"mcp-name", each) for each in headers]})

    found: Any = Context()
    if not is_refused:
        check_header(found, "p")
        return
    with pytest.raises(MCPError) as refused:
        check_header(found, "p")
    assert refused.value.error.code == HEADER_MISMATCH


def test_a_request_without_headers_needs_none() -> None:
    class Context:
        request = None

    found: Any = Context()
    check_header(found, "p")

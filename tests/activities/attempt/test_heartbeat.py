"""Heartbeat details: read whatever version of a worker wrote them, counted up over the attempts."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.attempt.heartbeat import Heartbeat, errors_so_far
from plans.errors import ToolError
from plans.model import Retry


@pytest.mark.parametrize(
    ("details", "errors"),
    [
        ([], 0),
        ([{"errors": 2, "line": "half"}], 2),
        ([{"errors": 2}], 2),
        ([{"errors": 2, "line": "half", "since": 17}, "more"], 2),
        ([{"line": "half"}], 0),
        ([{"errors": "2"}], 0),
        ([{"errors": -1}], 0),
        (["half"], 0),
        ([None], 0),
    ],
)
def test_the_count_is_read_from_details_of_any_version(details: list[Any], errors: int) -> None:
    assert errors_so_far(details) == errors


@pytest.mark.parametrize(("errors_before", "final"), [(0, False), (1, False), (2, True)])
async def test_an_error_is_counted_and_the_last_one_is_final(errors_before: int, final: bool) -> None:
    environment = ActivityEnvironment()
    beats: list[dict[str, Any]] = []
    environment.on_heartbeat = lambda *details: beats.append(details[0])
    error = ToolError("BUSY", "busy", retryable=True)

    async def fail() -> ApplicationError:
        heartbeat = Heartbeat(lambda: "")
        heartbeat.errors = errors_before
        return heartbeat.failure(error, Retry(attempts=3, delay=1.0, factor=2.0), "busy now", {"more": 1}, 60.0)

    failure = await environment.run(fail)
    assert failure.non_retryable is final
    assert failure.details[0] == {"code": "BUSY", "attempt": errors_before + 1, "more": 1}
    assert beats == ([] if final else [{"errors": errors_before + 1, "line": "busy now"}])
    if not final:
        assert failure.next_retry_delay is not None
        assert failure.next_retry_delay.total_seconds() == 2.0**errors_before

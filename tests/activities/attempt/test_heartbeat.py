"""Heartbeat details: read whatever version of a worker wrote them, counted up over the attempts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from plansurvive.activities.attempt.heartbeat import ERROR_BYTES, Heartbeat, errors_so_far
from plansurvive.plans.activity_io import Attempt
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model import Retry


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
        heartbeat = Heartbeat(dict, Retry(attempts=3, delay=1.0, factor=2.0))
        heartbeat.errors = errors_before
        return heartbeat.failure(error, "busy now", {"more": 1}, 60.0)

    failure = await environment.run(fail)
    assert failure.non_retryable is final
    assert failure.details[0]["more"] == 1
    assert (failure.details[0]["code"], failure.details[0]["attempt"]) == ("BUSY", errors_before + 1)
    assert [(beat["errors"], beat["line"]) for beat in beats] == ([] if final else [(errors_before + 1, "busy now")])
    told = failure.details[0] if final else beats[0]
    attempt = Attempt.model_validate(told["attempts"][-1])
    delay = None if final else 2.0**errors_before
    assert (attempt.number, attempt.code, attempt.error, attempt.delay) == (
        errors_before + 1,
        "BUSY",
        "busy now",
        delay,
    )
    assert failure.next_retry_delay == (None if delay is None else timedelta(seconds=delay))


BEGAN = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)
FAILED = {"number": 1, "began": BEGAN.isoformat(), "code": "BUSY", "error": "busy", "delay": 1.0}
RUNNING = {"line": "half", "began": BEGAN.isoformat(), "lasted": 1_500.0}


async def heartbeat_after(attempt: int, *details: Any, earlier: Sequence[Attempt] = ()) -> Heartbeat:
    """The heartbeat of an attempt, as Temporal counts it, that finds these details."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt, heartbeat_details=details)

    async def begin() -> Heartbeat:
        return Heartbeat(dict, Retry(), earlier)

    return await environment.run(begin)


@pytest.mark.parametrize(
    ("attempt", "details", "recorded"),
    [
        (1, [], [(1, "BUSY")]),
        (2, [], [(1, "BUSY"), (2, "WORKER_LOST")]),
        (2, [{"errors": 2, "attempts": [FAILED, FAILED | {"number": 2}]}], [(1, "BUSY"), (2, "BUSY")]),
    ],
)
async def test_attempts_that_were_made_in_another_activity_count(
    attempt: int, details: list[Any], recorded: list[tuple[int, str]]
) -> None:
    heartbeat = await heartbeat_after(attempt, *details, earlier=[Attempt.model_validate(FAILED)])
    assert [(each.number, each.code) for each in heartbeat.attempts] == recorded
    assert heartbeat.errors == sum(code == "BUSY" for _, code in recorded)


@pytest.mark.parametrize(
    ("attempt", "details", "recorded", "more"),
    [
        (1, [], [], 0),
        (2, [{"errors": 1, "attempts": [FAILED]}], [(1, "BUSY")], 0),
        (2, [], [(1, "WORKER_LOST")], 0),
        (3, [{"errors": 0, **RUNNING}], [(1, "WORKER_LOST"), (1, "WORKER_LOST")], 0),
        (3, [{"errors": 1, "attempts": [FAILED], **RUNNING}], [(1, "BUSY"), (2, "WORKER_LOST")], 0),
        (2, [{"errors": 1, "line": "busy"}], [], 1),
        (4, [{"errors": 2, "line": "half"}], [(3, "WORKER_LOST")], 2),
        (1, [{"errors": 0, **RUNNING}], [], 0),
    ],
    ids=[
        "first",
        "failed",
        "lost unseen",
        "lost twice",
        "failed, then lost",
        "older",
        "older, lost",
        "reset by a person",
    ],
)
async def test_attempts_that_no_worker_ended_are_recorded_as_lost(
    attempt: int, details: list[Any], recorded: list[tuple[int, str]], more: int
) -> None:
    heartbeat = await heartbeat_after(attempt, *details)
    assert [(each.number, each.code) for each in heartbeat.attempts] == recorded
    assert heartbeat.more == more


async def test_a_lost_attempt_says_when_it_began_and_how_far_it_was() -> None:
    [lost] = (await heartbeat_after(2, {"errors": 0, **RUNNING})).attempts
    assert (lost.began, lost.duration, lost.delay) == (BEGAN, 1_500.0, None)
    assert "its last progress was: half" in lost.error


async def test_no_more_than_twenty_attempts_travel_in_detail_with_short_errors() -> None:
    heartbeat = await heartbeat_after(1)
    for _ in range(30):
        heartbeat = await heartbeat_with_one_more(heartbeat)
    assert [attempt.number for attempt in heartbeat.attempts] == list(range(11, 31))
    assert heartbeat.more == 10
    assert max(len(attempt.error.encode()) for attempt in heartbeat.attempts) <= ERROR_BYTES


async def heartbeat_with_one_more(before: Heartbeat) -> Heartbeat:
    """The heartbeat of the attempt after one that failed with a long error, from the details that were sent."""
    environment, beats = ActivityEnvironment(), list[dict[str, Any]]()
    environment.on_heartbeat = lambda *details: beats.append(details[0])

    async def fail() -> None:
        heartbeat = Heartbeat(dict, Retry(attempts=100))
        heartbeat.errors, heartbeat.attempts, heartbeat.more = before.errors, before.attempts, before.more
        heartbeat.failure(ToolError("BUSY", "b", retryable=True), "long \n" * 1_000, {}, 60.0)

    await environment.run(fail)
    return await heartbeat_after(before.errors + 2, *json.loads(json.dumps(beats)))


@pytest.mark.parametrize(
    "details",
    [
        {"errors": 0, "attempts": "many", "moreAttempts": -3, "began": 5, "lasted": "long", "line": ["x"]},
        {"errors": 0, "attempts": [5, {"number": 0}, {**FAILED, "began": "2026-01-20T10:30:00"}, {**FAILED, "odd": 1}]},
        {"errors": 0, "began": "yesterday", "moreAttempts": 10**30, "lasted": -1},
        {"errors": 10**30, "attempts": [], "lasted": float("nan")},
    ],
)
async def test_details_that_no_worker_of_ours_wrote_do_no_harm(details: dict[str, Any]) -> None:
    heartbeat = await heartbeat_after(2, details)
    assert (heartbeat.errors, heartbeat.more) == (0, 0)
    assert [each.code for each in heartbeat.attempts] == ["WORKER_LOST"]

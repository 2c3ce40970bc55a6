"""Activities that somebody ends by hand (`temporal activity complete` and `fail`), with anything in the result.

The step ends, the plan continues, and it can be read.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.workflowservice.v1 import (
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskFailedByIdRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError

from tests.kit.driving import Plans, Started, step, terminated, work
from tests.kit.waiting import until
from tests.nightly import sampled

JSON = {"encoding": b"json/plain"}
MESSAGE = {"encoding": b"json/protobuf", "messageType": b"temporal.api.common.v1.Payload"}
RESULTS = {
    "a protobuf message": (Payload(metadata=MESSAGE, data=b"{}"), "UNDECODABLE"),
    "bytes that are no text": (Payload(metadata={"encoding": b"binary/plain"}, data=b"\xff\xfe"), "UNDECODABLE"),
    "an unknown encoding": (Payload(metadata={"encoding": b"binary/evil"}, data=b"x"), "UNDECODABLE"),
    "a duration that is none": (Payload(metadata=JSON, data=b'{"duration": NaN, "value": 1}'), None),
    "an endless duration": (Payload(metadata=JSON, data=b'{"duration": 1e999, "value": 1}'), None),
    "a count that is none": (Payload(metadata=JSON, data=b'{"duration": 1, "attempt": -5, "value": 1}'), None),
    "any JSON (control)": (Payload(metadata=JSON, data=b'{"by": "hand"}'), None),
}
pytestmark = [pytest.mark.on_server("activities that others complete"), pytest.mark.uses("planning")]

ODD: list[Any] = ["x", None, [], {}, math.nan, math.inf, -1, 10**30, True]
DETAILS: list[dict[str, Any]] = [
    *({"attempt": each} for each in ODD),
    *({"duration": each} for each in ODD),
    {"attempt": 2, "duration": 5.0},
]


async def end_by_hand(plan: Started, client: Client, step_id: str, how: str, payload: Payload) -> None:
    """Complete (`ok`) or fail a step by hand once it runs."""
    about: dict[str, Any] = {"namespace": client.namespace, "workflow_id": plan.id, "activity_id": step_id}
    given = Payloads(payloads=[payload])
    service = client.workflow_service

    async def responded() -> bool:
        try:
            if how == "ok":
                await service.respond_activity_task_completed_by_id(
                    RespondActivityTaskCompletedByIdRequest(**about, result=given)
                )
            else:
                info = ApplicationFailureInfo(type="BY_HAND", non_retryable=True, details=given)
                failure = Failure(message="by hand", application_failure_info=info)
                await service.respond_activity_task_failed_by_id(
                    RespondActivityTaskFailedByIdRequest(**about, failure=failure)
                )
        except RPCError:  # it has not started yet
            return False
        return True

    await until(responded, "the activity was ended by hand")


@pytest.mark.modes("plain")
@pytest.mark.parametrize("kind", sampled(RESULTS, 2))
async def test_a_result_that_somebody_made_ends_the_step(plans: Plans, temporal_client: Client, kind: str) -> None:
    payload, code = RESULTS[kind]
    plan = await plans.start([work("a", seconds=600), work("b", "a", requiresApproval=True)])
    await end_by_hand(plan, temporal_client, "a", "ok", payload)
    view = await plan.until(lambda view: step(view, "a")["status"] in ("completed", "failed"), "it has ended")
    result = step(view, "a")["result"]
    assert result.get("code") == code
    assert 0 <= result["duration"] < 1e15
    assert result["attempt"] == 1
    json.dumps(view, allow_nan=False)
    await terminated(temporal_client, plan.id)


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.modes("plain")
async def test_a_failure_that_somebody_made_fails_the_step(plans: Plans, temporal_client: Client) -> None:
    plan = await plans.start([work(f"a{number}", seconds=600) for number in range(len(DETAILS))])
    for number, detail in enumerate(DETAILS):
        payload = Payload(metadata=JSON, data=json.dumps(detail).encode())
        await end_by_hand(plan, temporal_client, f"a{number}", "fail", payload)
    view = await plan.ended()
    for number, detail in enumerate(DETAILS):
        result = step(view, f"a{number}")["result"]
        assert result["code"] == "BY_HAND", detail
        assert 0 <= result["duration"] < 1e15, detail
        assert result["attempt"] == (2 if detail == DETAILS[-1] else 1), detail

"""The limits of a task queue as its limiter keeps them: what counts now, what runs, who waits."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from pydantic import ValidationError
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.client.errors import NoWorker
from plansurvive.client.rpc import translated
from plansurvive.features.limits.model import LISTED, LimitRow, workflow_id

PATIENCE = 8.0
"""Seconds; a worker that has to replay the limiter first takes less."""


async def limits(client: Client, *, queue: str = "plans") -> list[LimitRow]:
    """The limits in use; none before anything was called under a limit. Raises NoWorker, NotConnected."""
    handle = client.get_workflow_handle(workflow_id(queue))
    asked = {"now": int(time.time() * 1_000)}
    try:
        async with asyncio.timeout(PATIENCE):
            rows: Any = await handle.query(LISTED, asked, reject_condition=QueryRejectCondition.NOT_OPEN)
        return [LimitRow.model_validate(row) for row in rows]
    except WorkflowQueryRejectedError:
        return []  # nothing was claimed for an hour
    except (TimeoutError, WorkflowQueryFailedError, ValidationError):
        text = f"the limiter of queue '{queue}' does not answer, so nothing with a limit starts; start a worker for it"
        raise NoWorker(text) from None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return []
        raise translated(error, workflow_id(queue)) from error


def in_words(row: LimitRow) -> str:
    """One limit on a line: what of it is used, and who waits."""
    used = [f"{number:,} of {rate}" for number, rate in zip(row.used, row.rates, strict=False)]
    running = [f"{row.running} of {row.concurrency} running"] if row.concurrency else []
    paused = [f"left alone for {row.paused:.0f} s, as its server asked"] if row.paused else []
    soon = "" if row.next_in is None else f", the first for {row.next_in:.0f} s"
    waiting = [f"{row.waiting:,} waiting{soon}"] if row.waiting else []
    return ", ".join([*used, *running, *paused, *waiting])

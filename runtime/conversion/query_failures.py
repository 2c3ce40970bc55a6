"""Failures whose messages are encrypted, where the SDK or the server needs to read them: queries."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from temporalio.api.failure.v1 import Failure
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle, WorkflowQueryFailedError
from temporalio.converter import DefaultFailureConverterWithEncodedAttributes, PayloadConverter
from temporalio.service import RPCError

ENCODED = "Encoded failure"
"""What the SDK writes in place of a message that is encrypted."""
THINKING = "TMPRL1101"
"""The SDK's code for a workflow task that exceeded the deadlock timeout, so that a query failed; worth a retry."""


class EncryptedFailures(DefaultFailureConverterWithEncodedAttributes):
    """Messages and stack traces are encrypted; that a workflow is still thinking stays readable."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        """Convert an exception."""
        super().to_failure(exception, payload_converter, failure)
        if THINKING in str(exception):
            failure.message = f"{ENCODED} [{THINKING}]"


async def reason(error: WorkflowQueryFailedError, handle: WorkflowHandle[Any, Any]) -> str:
    """Why a query failed. Where that is encrypted the server does not hand it on; mostly the plan has failed, with the
    same message as its result."""
    if error.message != ENCODED:
        return error.message
    with suppress(RPCError):
        if (await handle.describe()).status is WorkflowExecutionStatus.FAILED:
            try:
                await handle.result()
            except WorkflowFailureError as failed:
                return str(getattr(failed.cause, "message", failed.cause))
    return "the reason is encrypted; the worker's log says it"

"""Why a query failed, also where messages of failures are encrypted: the SDK hands on their readable part only."""

from __future__ import annotations

from temporalio.api.errordetails.v1 import QueryFailedFailure
from temporalio.client import WorkflowQueryFailedError
from temporalio.converter import DataConverter
from temporalio.service import RPCError

from plans.errors import PlanError


async def reason(error: WorkflowQueryFailedError, converter: DataConverter) -> str:
    """The message of the workflow, decrypted; the SDK's if the server gave no details, or the key is not here."""
    answer = error.__context__
    if not isinstance(answer, RPCError):
        return error.message
    for detail in answer.grpc_status.details:
        failed = QueryFailedFailure()
        if detail.Unpack(failed):
            try:
                return str(getattr(await converter.decode_failure(failed.failure), "message", error.message))
            except PlanError as lacking:
                return f"{error.message}: {lacking.message}"
    return error.message

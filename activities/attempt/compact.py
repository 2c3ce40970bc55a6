"""Results of our activities are sent without the fields that have their defaults.

While workers are upgraded one after the other, one of before may run a workflow and one of now make its calls. Our
models reject fields that they do not know, and of a field that is new and empty the worker of before need not hear.
"""

from __future__ import annotations

from typing import Any

from temporalio.common import RawValue
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from plansurvive.plans.model import Value
from plansurvive.runtime.conversion.payloads import json_payload


class Compacted(RawValue):
    """A result as it is sent, and as the activity returned it, for interceptors around this one."""

    def __init__(self, result: Value) -> None:
        text = result.model_dump_json(exclude_defaults=True)
        super().__init__(json_payload(text.encode()))
        self.result = result


class Compacting(Interceptor):
    """Of a worker with our activities; the results of others are left as they are."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """The interceptor of the worker's activities."""
        return _Compacting(next)


class _Compacting(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        result = await self.next.execute_activity(input)
        return Compacted(result) if isinstance(result, Value) else result


def returned(result: Any) -> Any:
    """What an activity returned, of a result that may be on its way already."""
    return result.result if isinstance(result, Compacted) else result

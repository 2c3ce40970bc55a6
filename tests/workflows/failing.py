"""Workers on which an activity fails for good: what a host does that nobody foresaw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import activity, client, worker
from temporalio.exceptions import ApplicationError

Fails = Callable[[str, Any], bool]
"""Whether an activity fails, of its type and its argument."""


def failing(whole: client.Client, fails: Fails) -> client.Client:
    """The client for a worker on which these activities fail."""
    config = whole.config()
    config["interceptors"] = [_Failing(fails)]
    return client.Client(**config)


class _Failing(client.Interceptor, worker.Interceptor):
    def __init__(self, fails: Fails) -> None:
        self._fails = fails

    def intercept_activity(self, next: worker.ActivityInboundInterceptor) -> worker.ActivityInboundInterceptor:
        """Put what fails before what would be done."""
        return _Inbound(next, self._fails)


class _Inbound(worker.ActivityInboundInterceptor):
    def __init__(self, next: worker.ActivityInboundInterceptor, fails: Fails) -> None:
        super().__init__(next)
        self._fails = fails

    async def execute_activity(self, input: worker.ExecuteActivityInput) -> Any:
        """Fail, or do it."""
        if self._fails(activity.info().activity_type, input.args[0]):
            raise ApplicationError("the disk is gone", non_retryable=True)
        return await super().execute_activity(input)

"""Workers on which chosen activities fail permanently, as on a broken host, or the tasks of continued runs do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import activity, client, worker, workflow
from temporalio.exceptions import ApplicationError

Fails = Callable[[str, Any], bool]
"""Whether an activity fails, by its type and first argument."""


def failing(healthy: client.Client, fails: Fails) -> client.Client:
    """A copy of the client; on workers created with it, these activities fail."""
    config = healthy.config()
    config["interceptors"] = [_Failing(fails)]
    return client.Client(**config)


def stuck(healthy: client.Client, is_stuck: Callable[[], bool]) -> client.Client:
    """A copy of the client; on workers created with it, no task of a continued run succeeds as long as `is_stuck`."""

    class Inbound(worker.WorkflowInboundInterceptor):
        async def execute_workflow(self, input: worker.ExecuteWorkflowInput) -> Any:
            if is_stuck() and workflow.info().continued_run_id:
                raise RuntimeError("the worker is stuck")  # fails the task, not the workflow
            return await super().execute_workflow(input)

    class Stuck(client.Interceptor, worker.Interceptor):
        def workflow_interceptor_class(
            self, input: worker.WorkflowInterceptorClassInput  # noqa: ARG002
        ) -> type[worker.WorkflowInboundInterceptor]:  # fmt: skip
            return Inbound

    config = healthy.config()
    config["interceptors"] = [Stuck()]
    return client.Client(**config)


class _Failing(client.Interceptor, worker.Interceptor):
    def __init__(self, fails: Fails) -> None:
        self._fails = fails

    def intercept_activity(self, next: worker.ActivityInboundInterceptor) -> worker.ActivityInboundInterceptor:
        """Intercept activities."""
        return _Inbound(next, self._fails)


class _Inbound(worker.ActivityInboundInterceptor):
    def __init__(self, next: worker.ActivityInboundInterceptor, fails: Fails) -> None:
        super().__init__(next)
        self._fails = fails

    async def execute_activity(self, input: worker.ExecuteActivityInput) -> Any:
        """Fail, or run the activity."""
        if self._fails(activity.info().activity_type, input.args[0]):
            raise ApplicationError("the disk is gone", non_retryable=True)
        return await super().execute_activity(input)

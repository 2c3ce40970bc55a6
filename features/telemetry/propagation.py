"""Carries the trace with every start: from a caller to its plan, from a plan to its activities, agents and child plans.

In the header `_tracer-data`, as Temporal's own interceptor for OpenTelemetry does, so that a client that uses that one
is understood. A header is not compared in a replay, and a run that lacks it (older, or started without telemetry)
begins its own trace: telemetry can be turned on and off while plans run. Nothing here records a span.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import environ
from typing import Any, NoReturn

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Interceptor as ClientInterceptor
from temporalio.client import OutboundInterceptor, StartWorkflowInput, WorkflowHandle
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.worker import Interceptor as WorkerInterceptor

from plansurvive.features.telemetry.trace_context import (
    Carried,
    TraceContext,
    of_step,
    of_workflow,
    read_carried,
    read_time,
    read_traceparent,
)

HEADER = "_tracer-data"
_LONGEST = 4_000
"""Bytes of a header that are read."""
Headers = Mapping[str, Payload]


def carried_in(headers: Headers) -> Carried | None:
    """What the headers of an activity carry; None if nothing, or something unreadable."""
    return read_carried(_data(headers))


def _data(headers: Headers) -> Mapping[str, Any]:
    payload = headers.get(HEADER)
    try:
        found = json.loads(payload.data) if payload is not None and len(payload.data) <= _LONGEST else {}
    except (ValueError, RecursionError):  # encrypted headers, or of something else
        found = {}
    return found if isinstance(found, dict) else {}


def _payload(data: Mapping[str, str]) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(data).encode())


def caller(environ: Mapping[str, str]) -> TraceContext | None:
    """The span that a program works in: that of OpenTelemetry, if the program uses it, else its TRACEPARENT."""
    api = sys.modules.get("opentelemetry.trace")
    if api is not None:
        found = api.get_current_span().get_span_context()
        if found.is_valid:
            return TraceContext(f"{found.trace_id:032x}", f"{found.span_id:016x}", bool(found.trace_flags & 1))
    return read_traceparent(environ.get("TRACEPARENT"))


class CarriesTrace(ClientInterceptor, WorkerInterceptor):
    """Of clients and workers. `sampler` gives the function that says whether a trace that begins here is exported."""

    def __init__(self, sampler: Callable[[], Callable[[str], bool]], environ: Mapping[str, str] = environ) -> None:
        self._sampler, self._environ = sampler, environ

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """The interceptor of one client."""
        return _Starts(next, self._environ)

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: ARG002
        """The interceptor of a worker's workflows."""
        return type("Carrying", (_Carries,), {"samples": staticmethod(self._sampler())})


class _Starts(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, environ: Mapping[str, str]) -> None:
        super().__init__(next)
        self._environ = environ

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        """Start a plan or an agent in the caller's trace, if there is one and nothing else says so."""
        above = caller(self._environ)
        if above is not None and HEADER not in input.headers:
            input = replace(input, headers={**input.headers, HEADER: _payload({"traceparent": above.traceparent})})
        return await super().start_workflow(input)


class _Carries(WorkflowInboundInterceptor):
    samples: Callable[[str], bool]

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Put the interceptor of what the workflow starts in front."""
        self._outbound = _Outbound(outbound)
        super().init(self._outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """Derive the workflow's span before anything is started."""
        self._outbound.begin(input.headers, type(self).samples)
        return await super().execute_workflow(input)


class _Outbound(WorkflowOutboundInterceptor):
    """Adds the workflow's span to what it starts. The payload is the same for all activities, and made once."""

    _own: TraceContext | None = None

    def begin(self, headers: Headers, samples: Callable[[str], bool]) -> None:
        """Derive the workflow's span: below the one that its headers name, or the root of a trace."""
        info, data = workflow.info(), _data(headers)
        above, first = read_traceparent(data.get("traceparent")), info.first_execution_run_id
        own = of_workflow(above, info.workflow_id, first, sampled=True)
        self._own = own = own if above else own._replace(sampled=samples(own.trace_id))
        began = read_time(data.get("began")) or info.workflow_start_time
        self._told = _payload(Carried(own, above.span_id if above else "", began).to_json())
        place = {"traceparent": above.traceparent} if above else {}
        self._passed_on = _payload({"began": began.isoformat(), **place})

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        """Start an activity with the trace."""
        return super().start_activity(self._with_own(input))

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        """Start a local activity with the trace."""
        return super().start_local_activity(self._with_own(input))

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:
        """Start an agent or a child plan below the step that it works for, which its memo names."""
        if self._own is not None:
            step_id = (input.memo or {}).get("stepId")
            above = of_step(self._own, step_id) if isinstance(step_id, str) and step_id else self._own
            input = replace(input, headers={**input.headers, HEADER: _payload({"traceparent": above.traceparent})})
        return await super().start_child_workflow(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        """Continue in the same trace, with the time at which the first run began."""
        if self._own is not None:
            input = replace(input, headers={**input.headers, HEADER: self._passed_on})
        super().continue_as_new(input)

    def _with_own(self, input: Any) -> Any:
        return input if self._own is None else replace(input, headers={**input.headers, HEADER: self._told})

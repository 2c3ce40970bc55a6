"""Exports spans by OTLP over HTTP, with the OpenTelemetry SDK; imported only where traces are on.

The standard variables say where and what (OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, OTEL_RESOURCE_ATTRIBUTES,
OTEL_TRACES_SAMPLER, OTEL_BSP_*, ...): the SDK reads them itself. Spans are made of values that have ended, with the ids
that `features.telemetry.trace_context` derives. Exporting happens in a thread of the SDK's; a collector that is down
costs spans, never a step.
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from os import environ

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from plansurvive.features.telemetry.spans import SCHEMA_URL, Span

SERVICE = "plans"
"""`service.name`, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES gives another."""
QUEUE = 65_536
"""Spans that wait for export at most: a plan of 10,000 steps ends with all of theirs at once."""
DELAY_MS = 200
"""A span waits this long for others to be exported with; a worker that is killed loses those."""
GATHER_SECONDS = 0.1
"""How long the end of a plan or an agent waits for others whose spans are exported with its own: an export costs about
1.5 ms of CPU time, whatever is in it."""
FLUSH_SECONDS = 1.0
"""How long the end of a plan waits until its spans are exported."""
SILENT_SECONDS = 30.0
"""After a collector was too slow, nothing waits for it for so long."""
_KINDS = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT}


class SpanExport:
    """Where a process sends its spans."""

    def __init__(self, version: str = "", exporter: SpanExporter | None = None) -> None:
        """`version`: of our package. `exporter`: without one, as the OTEL_ variables say.

        Raises ValueError if a variable is unusable.
        """
        named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        own = {"service.version": version} if version else {}
        resource = Resource.create(own | ({} if named else {"service.name": SERVICE}))
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._resource, self._sampler = provider.resource, provider.sampler
        self._scope = InstrumentationScope("plans-that-survive", version, SCHEMA_URL)
        size = None if "OTEL_BSP_MAX_QUEUE_SIZE" in environ else QUEUE
        delay = None if "OTEL_BSP_SCHEDULE_DELAY" in environ else DELAY_MS
        self._processor = BatchSpanProcessor(
            exporter or OTLPSpanExporter(), max_queue_size=size, schedule_delay_millis=delay
        )
        self._silent_until = 0.0
        self._gathering: asyncio.Future[bool] | None = None

    def samples(self, trace_id: str) -> bool:
        """Whether a trace that begins here is exported (OTEL_TRACES_SAMPLER)."""
        decided = self._sampler.should_sample(None, int(trace_id, 16), "plan")
        return decided.decision is not Decision.DROP

    def add(self, span: Span) -> None:
        """Have a span exported, if its trace is."""
        if span.context.sampled:
            self._processor.on_end(self._read(span))

    async def flush(self, seconds: float = FLUSH_SECONDS) -> bool:
        """Wait until all spans are exported, about `seconds` at most; returns whether they are."""
        if time.monotonic() < self._silent_until:
            return False
        if self._gathering is None:
            self._gathering = asyncio.ensure_future(self._flushed(seconds))
        return await asyncio.shield(self._gathering)

    async def _flushed(self, seconds: float) -> bool:
        await asyncio.sleep(GATHER_SECONDS)
        self._gathering = None  # who comes from now on may be too late for this export
        work = asyncio.ensure_future(asyncio.to_thread(self._processor.force_flush, int(seconds * 1_000)))
        done, _ = await asyncio.wait([work], timeout=seconds)
        if not done or not work.result():
            self._silent_until = time.monotonic() + SILENT_SECONDS
            return False
        return True

    def close(self) -> None:
        """Export what waits, and end the thread."""
        self._processor.shutdown()  # type: ignore[no-untyped-call]

    def _read(self, span: Span) -> ReadableSpan:
        trace_id, flags = int(span.context.trace_id, 16), TraceFlags(TraceFlags.SAMPLED)
        attributes = span.attributes | ({"error.type": span.error} if span.error else {})
        return ReadableSpan(
            name=span.name,
            context=SpanContext(trace_id, int(span.context.span_id, 16), is_remote=False, trace_flags=flags),
            parent=SpanContext(trace_id, int(span.parent, 16), is_remote=True) if span.parent else None,
            resource=self._resource,
            attributes=attributes,
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
            start_time=_nanoseconds(span.began),
            end_time=_nanoseconds(span.ended),
            instrumentation_scope=self._scope,
        )


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000

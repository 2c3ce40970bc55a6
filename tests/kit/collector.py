"""A collector of traces: OTLP over HTTP, protobuf, as a real one takes it. And what makes spans a tree."""

from __future__ import annotations

import gzip
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

HOST = "127.0.0.1"


class Received(NamedTuple):
    """A span as it came in."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    began: int
    ended: int
    attributes: dict[str, Any]
    failed: bool
    kind: int
    schema_url: str
    service: str


class Collector:
    """The spans that came in, and the bytes and headers that they came in."""

    def __init__(self) -> None:
        self.spans, self.bodies, self.headers = list[Received](), list[bytes](), list[dict[str, str]]()
        self.port = 0

    @property
    def url(self) -> str:
        """The value for OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://{HOST}:{self.port}"

    def named(self, start: str) -> list[Received]:
        """The spans whose names begin so, in the order in which they began."""
        return sorted((span for span in self.spans if span.name.startswith(start)), key=lambda span: span.began)

    def has_plan(self, number: int = 1) -> bool:
        """Whether so many plans have ended: their spans are the last."""
        return len(self.named("plan")) >= number

    def take(self, body: bytes, headers: dict[str, str]) -> None:
        """One request."""
        self.headers.append(headers)
        self.bodies.append(body)
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _attributes(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(Received(
                        span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
                        span.start_time_unix_nano, span.end_time_unix_nano, _attributes(span.attributes),
                        span.status.code == 2, span.kind, scope.schema_url, resource.get("service.name", ""),
                    ))  # fmt: skip


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector that listens as long as the block runs."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            found.take(body, {name.lower(): value for name, value in self.headers.items()})
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((HOST, 0), Handler)
    found.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def lines(spans: Iterable[Received], *, above: str = "") -> list[str]:
    """The spans as one tree, a line each, indented by depth. Raises AssertionError if they are not one tree.

    `above`: id of the caller's span, which is not among them.
    """
    found = list(spans)
    assert len({span.trace_id for span in found}) == 1, "one trace"
    ids = [span.span_id for span in found]
    assert len(ids) == len(set(ids)), "each span once"
    assert {span.parent for span in found} <= {above, *ids}, "no span hangs in the air"
    below = defaultdict[str, list[Received]](list)
    for span in sorted(found, key=lambda each: (each.began, each.name)):
        assert span.began <= span.ended
        below[span.parent].append(span)
    assert len(below[above]) == 1, "one root"

    def drawn(span_id: str, depth: int) -> Iterator[str]:
        for span in below[span_id]:
            yield "  " * depth + _line(span)
            yield from drawn(span.span_id, depth + 1)

    tree = list(drawn(above, 0))
    assert len(tree) == len(found), "no circle"
    return tree


def _line(span: Received) -> str:
    names = [str(span.attributes[name]) for name in ("plans.step.id", "plans.attempt") if name in span.attributes]
    error = span.attributes.get("error.type")
    assert span.failed == (error is not None)
    return " ".join([span.name, *names, *([f"!{error}"] if error else [])])


def _attributes(found: Iterable[Any]) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in found}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)

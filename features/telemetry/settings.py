"""Settings of telemetry: traces, metrics and logs, all off by default. The standard OTEL_ variables say where to.

Headers of a collector may hold a key, so they are variables of the process and never settings.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic.functional_validators import AfterValidator

from plansurvive.runtime.feature_settings import FeatureSettings
from plansurvive.runtime.setting_groups.web import split_address


def _address(text: str) -> str:
    """HOST:PORT; of a port alone, that of 127.0.0.1."""
    address = f"127.0.0.1:{text}" if text.isdecimal() else text
    if split_address(address)[1] == 0:
        raise ValueError("name the port: Prometheus must find it")
    return address


class TelemetrySettings(FeatureSettings):
    """Settings of telemetry."""

    feature = "telemetry"

    otel: bool = False
    """`on`, for workers and clients: traces are exported by OTLP over HTTP, as the standard variables of OpenTelemetry
    say (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, ...); needs the extra
    `telemetry`."""
    metrics: Annotated[str, AfterValidator(_address)] | None = None
    """`HOST:PORT` where a worker, or all processes of one, serve `/metrics` for Prometheus; a port alone is one of
    127.0.0.1; default: no metrics."""
    log: Literal["text", "json"] = "text"
    """`json`: workers write a JSON object per line to stderr, with plan, step, attempt and trace."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """With `PLANS_LOG=json`, the lowest level that is written: `debug`, `info`, `warning`, `error`."""


SETTINGS = TelemetrySettings

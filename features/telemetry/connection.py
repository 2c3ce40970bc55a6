"""The connections of a process with telemetry: the carrier of traces for every client, and the exporter of spans.

What the settings do not ask for is not imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from plansurvive.features.telemetry.settings import TelemetrySettings
from plansurvive.runtime.base.extras import install_line
from plansurvive.runtime.settings import SettingError, Settings

if TYPE_CHECKING:
    from plansurvive.features.telemetry.span_export import SpanExport

HEADERS = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")
"""Variables that may hold the key of a collector."""


def interceptors(settings: Settings) -> list[Any]:
    """The interceptors of a client, which its workers take over: one that carries traces, if they are on."""
    if not settings.of(TelemetrySettings).otel:
        return []
    from plansurvive.features.telemetry.propagation import CarriesTrace

    return [CarriesTrace(lambda: exporter().samples)]


@cache
def exporter() -> SpanExport:
    """The exporter of this process. Raises SettingError if the library is missing, or an OTEL_ variable unusable."""
    try:
        from plansurvive.features.telemetry.span_export import SpanExport
    except ImportError as error:
        text = f"the library is not installed ({error.name}); run: {install_line('plansurvive[telemetry]')}"
        raise SettingError({"PLANS_OTEL": text}) from None
    try:
        return SpanExport(_version())
    except ValueError as error:
        raise SettingError({"PLANS_OTEL": f"an OTEL_ variable cannot be used: {error}"}) from None


def variables(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """The OTEL_ variables of a worker, so that one which runs with others is replaced; none while traces are off."""
    is_on = settings.of(TelemetrySettings).otel
    return {name: text for name, text in environ.items() if is_on and name.startswith("OTEL_")}


def collector_secrets(environ: Mapping[str, str]) -> list[str]:
    """The values of the headers that a collector gets, as they may be keys."""
    pairs = [pair for name in HEADERS for pair in environ.get(name, "").split(",")]
    values = [unquote(pair.partition("=")[2].strip()) for pair in pairs]
    return [each for value in values for each in (value, *value.split()) if each]


def _version() -> str:
    try:
        return version("plansurvive")
    except PackageNotFoundError:  # run from its sources
        return ""

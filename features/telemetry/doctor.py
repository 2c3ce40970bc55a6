"""The row of `plan doctor` about traces."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, about
from plansurvive.features.telemetry.connection import exporter
from plansurvive.features.telemetry.settings import TelemetrySettings
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """Whether a worker could export its traces, as far as this machine knows; nothing while they are off."""

    def look() -> tuple[str, str]:
        if not settings.of(TelemetrySettings).otel:
            return "", ""
        exporter()
        return "exported, as the OTEL_ variables say", ""

    return about("traces", look)

"""The keys of a collector, for the masks of a worker."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.activities.values.redaction import Fixed
from plansurvive.features.telemetry.connection import collector_secrets
from plansurvive.runtime.settings import Settings


def masked(settings: Settings, environ: Mapping[str, str]) -> Fixed:  # noqa: ARG001
    """What the headers for a collector hold."""
    return Fixed(collector_secrets(environ))

"""The connections of a process that signs: an interceptor of its clients, the innermost, as it signs what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.runtime.settings import Settings


def interceptors(settings: Settings) -> list[Any]:
    """The interceptor that signs, with PLANS_DECISIONS=signed. Raises SettingError for a key that others can read."""
    if settings.decisions != "signed":
        return []
    from plansurvive.features.signing.signer import Signer  # lazily: most settings do without the library

    return [Signer(settings)]


def variables(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG001
    """None: the setting is one of the core's."""
    return {}

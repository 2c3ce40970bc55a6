"""The connections of a process that signs: an interceptor of its clients, the innermost, as it signs what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plansurvive.runtime.settings import Settings

OWN = ("person.key", "page.key")
"""Files of the state directory with keys that prove who somebody is (`own_keys`)."""


def interceptors(settings: Settings) -> list[Any]:
    """The interceptor that signs, with PLANS_DECISIONS=signed or a key of a person or page in the state directory.

    Raises SettingError for a key that others can read.
    """
    if settings.decisions != "signed" and not any((settings.state_dir / name).is_file() for name in OWN):
        return []
    from plansurvive.features.signing.signer import Signer  # lazily: most settings do without the library

    return [Signer(settings, machine=settings.decisions == "signed")]


def variables(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG001
    """None: the setting is one of the core's."""
    return {}

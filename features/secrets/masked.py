"""The values of secrets, for the masks of a worker."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.features.secrets.store import SecretStore, store_of
from plansurvive.runtime.settings import Settings


def masked(settings: Settings, environ: Mapping[str, str]) -> SecretStore:  # noqa: ARG001
    """Every value that this process has read. Raises SettingError."""
    return store_of(settings)

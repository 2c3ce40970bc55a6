"""The setting of secrets: where `secrets.toml` is. Secrets themselves are never settings."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class SecretSettings(FeatureSettings):
    """Settings of the secrets that plans name."""

    feature = "secrets"

    secrets: NamedFile | None = None
    """File with the secrets (docs/secrets.md) that plans may name, on each worker that uses them; default:
    `secrets.toml` in the state directory, if there is one."""


SETTINGS = SecretSettings

"""The setting of the limits: where `limits.toml` is."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class LimitSettings(FeatureSettings):
    """Settings of rates and concurrency."""

    feature = "limits"

    limits: NamedFile | None = None
    """File with rates and concurrency (docs/limits.md) of tools, queues and the LLM; default: `limits.toml` in the
    state directory, if there is one."""


SETTINGS = LimitSettings

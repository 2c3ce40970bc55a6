"""Settings of the results that later runs may take."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plansurvive.runtime.feature_settings import FeatureSettings


class CacheSettings(FeatureSettings):
    """Settings of kept results."""

    feature = "cache"

    cache: Literal["on", "off"] = "on"
    """`off`: no step takes or keeps results for later runs (docs/cache.md), whatever its plan says."""
    cache_mb: int = Field(default=1_024, ge=1, le=1_048_576)
    """MB for the files and large values of those results; the least recently used are dropped first."""
    cache_days: int = Field(default=30, ge=1, le=3_650)
    """Days after which `plan prune` removes a result that no run has taken."""


SETTINGS = CacheSettings

"""The setting of garbage collection: the age below which nothing is removed."""

from __future__ import annotations

from pydantic import Field

from plansurvive.runtime.feature_settings import FeatureSettings


class UpkeepSettings(FeatureSettings):
    """Settings of garbage collection."""

    feature = "upkeep"

    prune_hours: float = Field(default=1.0, ge=1, le=1_000_000, allow_inf_nan=False)
    """Age in hours below which a scheduled prune (docs/scaling.md#storage) removes nothing, whatever its schedule
    says."""


SETTINGS = UpkeepSettings

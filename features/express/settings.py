"""Settings of segments."""

from __future__ import annotations

from typing import Literal

from plansurvive.runtime.feature_settings import FeatureSettings


class ExpressSettings(FeatureSettings):
    """Settings of segments."""

    feature = "express"

    express: Literal["on", "off"] = "off"
    """`on`: the quick steps of plans that say nothing run several in one activity (docs/express.md)."""


SETTINGS = ExpressSettings

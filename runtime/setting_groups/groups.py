"""All groups of settings as one."""

from __future__ import annotations

from plansurvive.runtime.setting_groups.prices import PriceSettings
from plansurvive.runtime.setting_groups.versions import VersionSettings
from plansurvive.runtime.setting_groups.web import WebSettings


class Groups(WebSettings, PriceSettings, VersionSettings):
    """The fields of every group."""

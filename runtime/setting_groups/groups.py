"""All groups of settings as one."""

from __future__ import annotations

from runtime.setting_groups.caching import CacheSettings
from runtime.setting_groups.hosts import HostSettings
from runtime.setting_groups.keys import KeySettings
from runtime.setting_groups.limits import LimitSettings
from runtime.setting_groups.mcp import McpSettings
from runtime.setting_groups.telemetry import TelemetrySettings
from runtime.setting_groups.upkeep import UpkeepSettings
from runtime.setting_groups.versions import VersionSettings
from runtime.setting_groups.web import WebSettings


class Groups(
    McpSettings,
    WebSettings,
    KeySettings,
    HostSettings,
    LimitSettings,
    TelemetrySettings,
    UpkeepSettings,
    CacheSettings,
    VersionSettings,
):
    """The fields of every group."""

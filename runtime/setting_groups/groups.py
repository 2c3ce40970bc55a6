"""All groups of settings as one."""

from __future__ import annotations

from plansurvive.runtime.setting_groups.hosts import HostSettings
from plansurvive.runtime.setting_groups.keys import KeySettings
from plansurvive.runtime.setting_groups.mcp import McpSettings
from plansurvive.runtime.setting_groups.telemetry import TelemetrySettings
from plansurvive.runtime.setting_groups.upkeep import UpkeepSettings
from plansurvive.runtime.setting_groups.versions import VersionSettings
from plansurvive.runtime.setting_groups.web import WebSettings


class Groups(
    McpSettings,
    WebSettings,
    KeySettings,
    HostSettings,
    TelemetrySettings,
    UpkeepSettings,
    VersionSettings,
):
    """The fields of every group."""

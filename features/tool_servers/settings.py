"""The setting of the servers of tools: where `mcp.toml` is."""

from __future__ import annotations

from plansurvive.runtime.feature_settings import FeatureSettings, NamedFile


class ToolServerSettings(FeatureSettings):
    """Settings of the servers of tools."""

    feature = "tool_servers"

    mcp: NamedFile | None = None
    """File with the servers of tools (docs/tool-servers.md) that plans may use; default: `mcp.toml` in the state
    directory, if there is one."""


SETTINGS = ToolServerSettings

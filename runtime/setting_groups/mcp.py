"""The setting of the servers of tools: where `mcp.toml` is."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, field_validator

from plansurvive.runtime.home_paths import home_path


class McpSettings(BaseModel):
    """Settings of the servers of tools."""

    mcp: Path | None = None
    """File with the servers of tools (docs/tool-servers.md) that plans may use; default: `mcp.toml` in the state
    directory, if there is one."""

    @field_validator("mcp")
    @classmethod
    def _file_is_absolute(cls, path: Path | None) -> Path | None:
        return home_path(path).absolute() if path else None

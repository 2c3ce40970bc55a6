"""The tool servers of a worker with these settings: what mcp.toml names, and what of the worker its programs get."""

from __future__ import annotations

import os
from collections.abc import Mapping

from activities.attempt.environment import sandbox_of
from activities.attempt.redaction import Secrets
from activities.mcp.connections import ToolServers
from activities.mcp.program import Site
from plans.files.name_patterns import ProtectedNames
from runtime.mcp.servers import file_of, read_servers, secrets_in
from runtime.settings import Settings


def tool_servers(settings: Settings, environ: Mapping[str, str] = os.environ) -> ToolServers:
    """The servers, none of them started yet. Raises SettingError for a bad mcp.toml."""
    from activities.tools.registry import source_files  # lazily, as it loads every tool

    servers, directory = read_servers(settings), file_of(settings).parent
    names = ProtectedNames(settings.protected, source_files(settings.tools))
    site = Site(sandbox_of(settings), names, settings.cache_dir, directory, environ)
    return ToolServers(servers, site, settings.state_dir, Secrets(secrets_in(servers, directory, environ)))

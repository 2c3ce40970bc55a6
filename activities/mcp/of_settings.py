"""The tool servers of a worker with these settings: what mcp.toml names, and what of the worker its programs get."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from plansurvive.activities.attempt.environment import sandbox_of
from plansurvive.activities.attempt.redaction import Secrets
from plansurvive.activities.mcp.connections import ToolServers
from plansurvive.activities.mcp.program import Site
from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.network.own_servers import own_servers
from plansurvive.plans.files.name_patterns import ProtectedNames
from plansurvive.runtime.mcp.servers import file_of, read_servers, secrets_in
from plansurvive.runtime.secrets.store import store_of
from plansurvive.runtime.settings import Settings


def tool_servers(settings: Settings, temporal: str = "", environ: Mapping[str, str] = os.environ) -> ToolServers:
    """The servers, none of them started yet. Raises SettingError for a bad mcp.toml.

    `temporal`: HOST:PORT of the server that the worker is connected to, which no server of tools may lead to.
    """
    from plansurvive.activities.tools.registry import source_files  # lazily, as it loads every tool

    servers, directory = read_servers(settings), file_of(settings).parent
    names = ProtectedNames(settings.protected, source_files(settings.tools))
    addresses = AddressPolicy.of(settings.http_allow, partial(own_servers, settings, temporal))
    site = Site(sandbox_of(settings), names, settings.cache_dir, directory, environ, addresses)
    secrets = Secrets(secrets_in(servers, directory, environ), store_of(settings))
    return ToolServers(servers, site, settings.state_dir, secrets)

"""The secrets of mcp.toml, for the masks of a worker."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.activities.values.redaction import Fixed
from plansurvive.features.tool_servers.servers import file_of, read_servers, secrets_in
from plansurvive.runtime.settings import Settings


def masked(settings: Settings, environ: Mapping[str, str]) -> Fixed:
    """What the references of mcp.toml lead to now. Raises SettingError for a bad mcp.toml."""
    found = secrets_in(read_servers(settings), file_of(settings).parent, environ)
    return Fixed([each.get_secret_value() for each in found])

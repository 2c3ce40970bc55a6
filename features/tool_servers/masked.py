"""The secrets of mcp.toml, for the masks of a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import SecretStr

from plansurvive.features.tool_servers.servers import file_of, read_servers, secrets_in
from plansurvive.runtime.settings import Settings


def masked(settings: Settings, environ: Mapping[str, str]) -> Sequence[SecretStr]:
    """What the references of mcp.toml lead to now. Raises SettingError for a bad mcp.toml."""
    return secrets_in(read_servers(settings), file_of(settings).parent, environ)

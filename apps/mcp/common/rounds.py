"""What a call hands to its client to send back with the person's replies (`requestState`): sealed, for one caller.

The key is a file of the state directory, so that any server on it takes up a call that another one began, or the same
one before it was restarted. The library seals (AES-256-GCM) and binds: tool, arguments, this server's name, a time, and
the caller as named here; whatever does not fit is refused before a tool sees it (MCP 2026-07-28, basic/patterns/mrtr).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import RequestStateSecurity
from mcp.server.request_state import AESGCMRequestStateCodec, authenticated_principal

from plansurvive.apps.mcp.common.host import Host
from plansurvive.runtime.private_files import secret
from plansurvive.runtime.settings import Settings

KEY_FILE = "mcp-rounds.key"
"""File in the state directory with the key, hexadecimal. Whoever loses it has people asked once more, no worse."""
LASTS = 24 * 3600.0
"""Seconds that a person may take to reply."""


def round_key(settings: Settings) -> str:
    """The key of the state directory, made on first use. Raises SettingError if others can read or change it."""
    settings.make_state_dir()
    return secret(settings.state_dir / KEY_FILE, lambda: secrets.token_hex(32), "PLANS_STATE_DIR", "people's replies")


def sealing(host: Host) -> RequestStateSecurity:
    """How a server of this host seals what clients send back."""

    def caller(ctx: ServerRequestContext[Any, Any]) -> str:
        """Over HTTP, the login's identity; on standard input and output, who started the server."""
        return authenticated_principal(ctx) or json.dumps(["stdio", host.user])

    return RequestStateSecurity(codec=_OfStateDirectory(host.settings), ttl=LASTS, bind_principal=caller)


def asked_state(keys: Iterable[str]) -> str:
    """The state of a call that asks these requests."""
    return json.dumps(sorted(keys))


def asked_keys(state: str | None) -> frozenset[str]:
    """The keys of the requests that the caller was asked in this call; none if it sent no state."""
    found = json.loads(state) if state else []
    return frozenset(found)


class _OfStateDirectory:
    """Seals with the key of the state directory as it is at that moment, like every other process on it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def seal(self, payload: bytes) -> str:
        return self._codec().seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._codec().unseal(token)

    def _codec(self) -> AESGCMRequestStateCodec:
        return AESGCMRequestStateCodec([round_key(self._settings)])

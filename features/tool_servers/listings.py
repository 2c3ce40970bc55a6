"""What the servers of mcp.toml were last heard to offer, in the state directory: read without starting any of them.

A listing belongs to one server's table in mcp.toml: after a change of the table it does not count. Files of ours, and
still read as if they were not: a listing that cannot be read is as good as none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

from plansurvive.features.tool_servers.listed_tools import Listing, Terms
from plansurvive.features.tool_servers.tool_server import ToolServer
from plansurvive.runtime.base.atomic_file import write_whole

FOLDER = "tool-servers"
"""Directory of the listings, in the state directory."""
MAX_BYTES = 4 * 1024 * 1024
FRESH = timedelta(hours=24)
"""How long a listing is not asked for again by commands that show it. Workers list their servers when they start."""


def config_of(server: ToolServer) -> str:
    """The digest of a server's table. Secrets are not in it, only references to them."""
    return hashlib.sha256(server.model_dump_json().encode()).hexdigest()


def terms_of(server: ToolServer) -> Terms:
    """What the operator says of the server's tools."""
    unasked = [name for name, approval in server.approval.items() if approval == "never"]
    return Terms(unasked=unasked, repeatable=server.repeatable, timeout=server.timeout)


def read_listing(state: Path, name: str, server: ToolServer) -> Listing | None:
    """The last listing of a server by its present table; None if there is none."""
    try:
        with (state / FOLDER / f"{name}.json").open("rb") as file:
            found = Listing.model_validate_json(file.read(MAX_BYTES))
    except (OSError, ValidationError):
        return None
    return found if found.server == name and found.config == config_of(server) else None


def read_listings(state: Path, servers: Mapping[str, ToolServer]) -> dict[str, Listing]:
    """The last listings, by server."""
    found = {name: read_listing(state, name, server) for name, server in servers.items()}
    return {name: each for name, each in found.items() if each is not None}


def write_listing(state: Path, listing: Listing) -> None:
    """Store a listing in place of the one before. Raises OSError."""
    folder = state / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    write_whole(folder / f"{listing.server}.json", listing.model_dump_json(exclude_defaults=True).encode())


def is_fresh(listing: Listing | None, now: datetime) -> bool:
    """Whether a command that shows the listing need not ask the server again."""
    return listing is not None and not listing.error and now - listing.time < FRESH

"""What of this machine makes the embedded server less safe than it should be, each with the command that mends it."""

from __future__ import annotations

from pathlib import Path

from runtime import server, temporal_binary
from runtime.private_files import trouble
from runtime.settings import Settings


def weaknesses(settings: Settings) -> list[str]:
    """One sentence for each weakness found; empty if there is none. Starts and changes nothing, asks no server."""
    return [*_of_server(settings), *_of_directory(settings.state_dir), *temporal_binary.weaknesses(settings)]


def _of_server(settings: Settings) -> list[str]:
    running = server.recorded(settings)
    if running is None:
        return []
    again = "run `plan down`; the next command starts the server again, with all plans"
    if running.guard is None:
        return [f"web pages in a browser can start plans: an older version started the server at {running.ui}; {again}"]
    if not running.guard.is_alive():
        return [f"the Temporal UI at {running.ui} is not reachable: the proxy in front of it has ended; {again}"]
    if not running.is_closed:
        text = "web pages in a browser may read the server's metrics: other servers use all ports that browsers refuse"
        return [f"{text}; stop one of those and {again}"]
    return []


def _of_directory(directory: Path) -> list[str]:
    if not directory.exists():
        return []
    problem = trouble(directory)
    if problem:
        return [problem]
    if directory.stat().st_mode & 0o077:
        return [f"other users can look into {directory}; run `chmod 700 {directory}`"]
    return []

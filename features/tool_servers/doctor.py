"""The row of `plan doctor` about mcp.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, about
from plansurvive.features.tool_servers.servers import FILE, read_servers
from plansurvive.runtime.base.extras import lacking
from plansurvive.runtime.settings import Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """The servers, and whether they can be asked; none is started. Nothing without a file."""

    def look() -> tuple[str, str]:
        known = read_servers(settings)
        if not known:
            return "", ""
        there, run = f"{FILE}: {', '.join(known)}", lacking("mcp")
        return there, f"{there}; no tool of theirs can be used: the library is not installed; run: {run}" if run else ""

    return about("tool servers", look)

"""The row of `plan doctor` about mcp.toml."""

from __future__ import annotations

from collections.abc import Mapping

from plansurvive.client.doctor import Finding, Verdict
from plansurvive.features.tool_servers.servers import FILE, read_servers
from plansurvive.runtime.base.extras import lacking
from plansurvive.runtime.settings import SettingError, Settings


def findings(settings: Settings, environ: Mapping[str, str]) -> list[Finding]:  # noqa: ARG001
    """The servers, and whether they can be asked; none is started. Nothing without a file."""
    try:
        known = read_servers(settings)
    except SettingError as error:
        return [Finding(subject="tool servers", verdict=Verdict.BAD, text=error.message)]
    text = f"{FILE}: {', '.join(known)}"
    if known and (line := lacking("mcp")):
        text += f"; no tool of theirs can be used: the library is not installed; run: {line}"
        return [Finding(subject="tool servers", verdict=Verdict.WARNING, text=text)]
    return [Finding(subject="tool servers", verdict=Verdict.GOOD, text=text)] if known else []

"""Plans as resources: plan://ID, its graph in Mermaid, its summary in Markdown, its plan file and the files it changed.

Reading one asks the plan; nothing is cached, and nothing is changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import MCPServer

from plansurvive.apps.mcp.common.host import Host
from plansurvive.apps.mcp.tools.views import shown
from plansurvive.client import runs
from plansurvive.client.rpc import plan_file
from plansurvive.plans.text.safe_text import safe
from plansurvive.plans.views.markdown import Node, mermaid
from plansurvive.plans.views.summary import summary_markdown

MAX_CHARACTERS = 500_000
"""Of a resource; a longer one is cut, and says so."""


@dataclass(frozen=True)
class Resources:
    """The resources of a host."""

    host: Host

    async def plan(self, plan_id: str) -> str:
        """Where a plan stands, as plan_show says it: JSON."""
        here = await self.host.connected()
        found, _ = await shown(here, plan_id)
        return _json(found.model_dump(mode="json", exclude_none=True))

    async def graph(self, plan_id: str) -> str:
        """A plan as a graph in Mermaid, its nodes coloured by status."""
        here = await self.host.connected()
        view = await runs.show(here.client, plan_id)
        return _bounded(mermaid([Node.of(step) for step in view.steps]))

    async def summary(self, plan_id: str) -> str:
        """The summary of a plan, so far or in total: Markdown."""
        here = await self.host.connected()
        return _bounded(summary_markdown(await runs.summary(here.client, plan_id)))

    async def file(self, plan_id: str) -> str:
        """A plan as a plan file, without statuses and results: JSON."""
        here = await self.host.connected()
        return _json(await plan_file(here.client, plan_id))

    async def files(self, plan_id: str) -> str:
        """The files that each step of a plan created, changed and deleted, without diffs: JSON."""
        here = await self.host.connected()
        report = await runs.file_changes(here.client, plan_id, diffs=False)
        return _json(report.model_dump(mode="json", include={"calls"}, exclude_none=True))


def _json(data: Any) -> str:
    return _bounded(json.dumps(data, ensure_ascii=False, indent=1, default=str))


def _bounded(text: str) -> str:
    shown_text = safe(text)
    if len(shown_text) <= MAX_CHARACTERS:
        return shown_text
    return f"{shown_text[:MAX_CHARACTERS]}\n… cut: {len(shown_text):,} characters; plan_show has pages"


def register(server: MCPServer[Any], host: Host) -> None:
    """Add the resources."""
    found = Resources(host)
    for uri, method, title, kind in (
        ("plan://{plan_id}", found.plan, "A plan", "application/json"),
        ("plan://{plan_id}/graph", found.graph, "A plan as a graph", "text/vnd.mermaid"),
        ("plan://{plan_id}/summary", found.summary, "The summary of a plan", "text/markdown"),
        ("plan://{plan_id}/file", found.file, "The plan file of a plan", "application/json"),
        ("plan://{plan_id}/files", found.files, "Files that a plan changed", "application/json"),
    ):
        description = (method.__doc__ or "").strip()
        server.resource(uri, name=method.__name__, title=title, description=description, mime_type=kind)(method)

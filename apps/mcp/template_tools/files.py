"""A file that a plan wrote, as content: pictures and sounds as such, texts and other files as embedded resources.

Only what the plan itself wrote is read: a path may come from an agent. A file that may hold secrets is not shown, and
one that is too large or on another machine is told by its name.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from plansurvive.activities.workspace.allowed import WorkspaceRules
from plansurvive.activities.workspace.contents import read_head
from plansurvive.activities.workspace.tree import may_hold_secrets
from plansurvive.activities.workspace.workspace import DirectoryEntry, Workspace
from plansurvive.apps.mcp.template_tools.contents import as_text
from plansurvive.plans.errors import ToolError
from plansurvive.plans.text.safe_text import line, safe
from plansurvive.runtime.settings import Settings

MAX_BYTES = 1_000_000
"""Of a file that is sent along."""


@dataclass(frozen=True)
class Written:
    """The files of one plan. `workspace`: None if it is not on this machine."""

    plan: str
    workspace: str | None
    paths: Collection[str]
    settings: Settings

    def block(self, path: str) -> ContentBlock:
        """The content of a file, or a sentence about why it is not shown."""
        if path not in self.paths:
            return _told(path, "is not a file that this plan wrote")
        if self.workspace is None:
            return _told(path, "is on the machine of the plan's worker")
        if may_hold_secrets(path.rpartition("/")[2]):
            return _told(path, "may hold secrets")
        try:
            rules = WorkspaceRules.of(self.settings)
            rules.check_recorded(self.workspace)
            with Workspace(self.workspace, closed=rules.closed).file(path, follow=False) as place:
                return self._content(path, place)
        except (ToolError, OSError, ValueError) as error:
            return _told(path, f"cannot be read: {line(str(error))[:200]}")

    def _content(self, path: str, place: DirectoryEntry) -> ContentBlock:
        if not place.is_regular:
            return _told(path, "is not a regular file")
        data = read_head(place, MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            return _told(path, f"is larger than {MAX_BYTES:,} bytes")
        media = mimetypes.guess_type(path)[0] or ""
        encoded = base64.b64encode(data).decode()
        if media.startswith("image/") and media != "image/svg+xml":
            return ImageContent(data=encoded, mime_type=media)
        if media.startswith("audio/"):
            return AudioContent(data=encoded, mime_type=media)
        uri = f"plan://{quote(self.plan)}/files/{quote(path)}"
        try:
            text = data.decode()
        except UnicodeDecodeError:
            media = media or "application/octet-stream"
            return EmbeddedResource(resource=BlobResourceContents(uri=uri, mime_type=media, blob=encoded))
        return EmbeddedResource(
            resource=TextResourceContents(uri=uri, mime_type=media or "text/plain", text=safe(text))
        )


def _told(path: str, what: str) -> TextContent:
    return TextContent(text=as_text(f"File {line(path)[:500]} {what}."))

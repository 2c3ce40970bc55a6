"""What a worker gives every tool besides the call and the log of effects: a sandbox for its commands, a watcher that
puts down what they change, and the secrets that no text may carry out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from activities.attempt.redaction import Secrets
from activities.provenance.watcher import Watcher
from activities.sandbox.sandbox import Sandbox
from activities.tools.tool import Tool, ToolContext


@dataclass(frozen=True)
class ToolEnvironment:
    """The worker's own means. Those of a test have no walls and watch nothing."""

    sandbox: Sandbox = field(default_factory=Sandbox)
    watcher: Watcher | None = None
    secrets: Secrets = field(default_factory=lambda: Secrets([]))

    @asynccontextmanager
    async def around(self, tool: Tool, context: ToolContext, args: dict[str, Any]) -> AsyncIterator[None]:
        """The call of a tool: watched when it may change anything, at no cost when it cannot."""
        context.sandbox = self.sandbox
        if self.watcher is None:
            yield
        elif tool.spec.effect == "pure":
            yield
            if context.files_read:
                await asyncio.to_thread(self.watcher.read, context)
        elif tool.is_opaque:
            async with self.watcher.watching(context, args):
                yield
        else:
            yield
            await asyncio.to_thread(self.watcher.wrote, context)

    def ended(self, context: ToolContext) -> None:
        """The call has failed for good: no further attempt will come."""
        if self.watcher is not None:
            self.watcher.forget(context.call.key)

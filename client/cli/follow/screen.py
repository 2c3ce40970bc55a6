"""The live board on a terminal: shows the plan's view as it changes and asks for approvals.

Keys count only while a question is shown, and only for the call that it shows. A decision is sent to the plan as
an update; if the plan rejects it, the error is shown and the board continues.
"""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text
from temporalio.client import Client

from client import runs
from client.cli.follow.board import ASKING, board
from client.cli.follow.keys import forget_typed, keys
from client.cli.follow.progress import Progress
from client.cli.output import out
from client.rpc import patiently
from client.runs import BriefView, Choice, EventView
from plans.errors import PlanError
from plans.views.models import PendingView
from plans.views.safe_text import line
from plans.views.views import shorten

READING_SECONDS = 0.4
"""Keys pressed sooner after a question appeared are ignored: they were not meant for it."""
NOTICE_SECONDS = 8.0
"""How long a remark stays on the screen."""
SMALL_STEPS = 200
"""Up to this many steps the whole view is queried at each change; bigger plans are updated from events."""
SHARE = 10
"""Pause between queries to a bigger plan, as a multiple of their duration: at most a tenth of its time goes to them."""
LAG_SECONDS = 2.0
"""Maximum age of what is shown of a bigger plan."""


class Screen:
    """One plan on the terminal."""

    def __init__(self, client: Client, plan: str, who: str) -> None:
        self._client, self._plan, self._who = client, plan, who
        self._console = out()
        self._progress: Progress | None = None
        self._later: set[str] = set()
        self._asked: PendingView | None = None
        self._since = 0.0
        self._notice, self._noticed = "", 0.0
        self._sending: set[asyncio.Task[None]] = set()

    async def follow(self) -> None:
        """Show the plan until it has ended; the final board stays on the screen."""
        with (
            Live(
                get_renderable=self._render, console=self._console, refresh_per_second=4, vertical_overflow="crop"
            ) as live,
            keys(self._pressed),
        ):
            async for _ in runs.changes(self._client, self._plan, self._say):
                await self._update()
                self._ask()
                live.refresh()
            self._progress, self._asked = Progress(await runs.brief(self._client, self._plan, self._say)), None

    async def _update(self) -> None:
        """Bring the view up to date."""
        start = time.monotonic()
        if self._progress is None or len(self._progress.view.steps) <= SMALL_STEPS:
            self._progress = Progress(await runs.brief(self._client, self._plan, self._say))
        else:
            while found := await self._events(self._progress.view.seq):
                if not self._progress.apply(found):
                    self._progress = Progress(await runs.brief(self._client, self._plan, self._say))
            await asyncio.sleep(min(LAG_SECONDS, SHARE * (time.monotonic() - start)))

    async def _events(self, since: int) -> list[EventView]:
        return await patiently(
            self._client, self._plan, self._say, lambda: runs.events(self._client, self._plan, since)
        )

    @property
    def _view(self) -> BriefView | None:
        return self._progress.view if self._progress else None

    def _render(self) -> RenderableType:
        if self._view is None:
            return Text(self._notice or "Waiting for the plan to answer ...", style="dim")
        return board(self._view, datetime.now(UTC), _height(self._console), self._footer())

    def _footer(self) -> RenderableType | None:
        rows = []
        item = self._question()
        if item:
            number = len(self._view.pending) if self._view else 0
            more = f"  ({number - 1} more)" if number > 1 else ""
            what = f"{line(item.tool)} {line(shorten(item.args))}"
            rows.append(Text.assemble(("Approve ", ASKING[1]), (line(item.step_id), "bold"), f"?  {what}{more}"))
            rows.append(Text(f"  {self._answers(item.step_id)}", style="bold"))
        if self._notice and time.monotonic() - self._noticed < NOTICE_SECONDS:
            rows.append(Text(line(self._notice), style="dim"))
        return Group(*rows) if rows else None

    def _ask(self) -> None:
        """Show the next question; keys pressed before it are discarded."""
        item = next((item for item in self._waiting() if item.step_id not in self._later), None)
        if item != self._asked:
            self._asked, self._since = item, time.monotonic()
            forget_typed()

    def _waiting(self) -> list[PendingView]:
        return self._view.pending if self._view else []

    def _question(self) -> PendingView | None:
        return self._asked

    def _pressed(self, key: str) -> None:
        if self._asked is None or time.monotonic() - self._since < READING_SECONDS:
            return
        asked = self._asked
        if key in "lL":
            self._later.add(asked.step_id)
            self._say(f"Decide later: {self._commands(asked.step_id)}")
            self._ask()
        elif key in "yYnN":
            self._asked = None
            choice = Choice(step_id=asked.step_id, by=self._who).naming(asked)
            task = asyncio.create_task(self._decide(choice, approved=key in "yY"))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _decide(self, choice: Choice, *, approved: bool) -> None:
        try:
            await runs.decide(self._client, self._plan, choice, approved=approved)
        except PlanError as error:
            self._say(error.message)

    def _answers(self, step_id: str) -> str:
        return "[y]es   [n]o   [l]ater" if sys.stdin.isatty() else self._commands(step_id)

    def _commands(self, step_id: str) -> str:
        return f"plan approve {self._plan} {step_id}   or: plan deny {self._plan} {step_id}"

    def _say(self, sentence: str) -> None:
        self._notice, self._noticed = sentence, time.monotonic()


def _height(console: Console) -> int:
    return max(8, console.height - 1)

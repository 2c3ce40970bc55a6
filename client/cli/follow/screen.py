"""The live board on a terminal: shows the plan's view as it changes, and asks for approvals and answers.

Keys count only while a question is shown, and only for the call that it shows. A decision is sent to the plan as
an update; if the plan rejects it, the error is shown and the board continues.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from plansurvive.client.cli.follow.answering import Asked, Decide, answered, commented, edited
from plansurvive.client.cli.follow.board import board, more_lines
from plansurvive.client.cli.follow.keys import Keyboard, forget_typed, keys
from plansurvive.client.cli.follow.next_steps import NextSteps, folded
from plansurvive.client.cli.follow.progress import Progress
from plansurvive.client.cli.follow.question import Question
from plansurvive.client.cli.terminal.asking import compared
from plansurvive.client.cli.terminal.output import out
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.live.feed import looks
from plansurvive.client.live.marks import ASKING
from plansurvive.client.live.steps import by_step, in_words, joined, with_blocks
from plansurvive.client.rpc import describe, patiently
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import BriefView, Choice, EventView
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.models.live import LiveView

READING_SECONDS = 0.4
"""Keys pressed sooner after a question appeared are ignored: they were not meant for it."""
NOTICE_SECONDS = 8.0
"""How long a remark stays on the screen."""
SMALL_STEPS = 200
"""Up to this many steps the whole view is queried at each change; bigger plans are updated from events."""
SHARE = 10
"""Pause between queries to a bigger plan, as a multiple of their duration: at most a tenth of its time goes to them."""
LISTED = 3
"""Steps that the board has room for in any case."""
AROUND_LINES = 6
"""Lines around the steps and the rows of a call: title, bar, counts, an empty one, the question, its keys."""
LAG_SECONDS = 2.0
"""Maximum age of what is shown of a bigger plan."""


class Screen:
    """One plan on the terminal."""

    def __init__(self, here: Connected, plan: str, who: str) -> None:
        self._here, self._client, self._plan, self._who = here, here.client, plan, who
        self._queue = ""
        self._compared: dict[str, Card] = {}
        self._console = out()
        self._progress: Progress | None = None
        self._later: set[str] = set()
        self._question: Question | None = None
        self._since = 0.0
        self._notice, self._noticed, self._away = "", 0.0, ""
        self._put_off: str | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._live: dict[str, LiveView] = {}
        self._board: Live | None = None
        self._keyboard: Keyboard | None = None
        self._answering = False
        self._next = NextSteps(self._client, plan)

    async def follow(self) -> None:
        """Show the plan until it has ended; the final board stays on the screen."""
        with self._drawing(), keys(self._pressed) as keyboard, self._looking():
            self._keyboard = keyboard
            async for _ in runs.changes(self._client, self._plan, self._lost):
                await self._update()
                # The files that pending calls write are compared with those of this machine.
                queue = self._queue = self._queue or (await describe(self._here.client, self._plan)).task_queue
                self._compared = {item.step_id: await compared(self._here, item, queue) for item in self._waiting()}
                self._ask()
                if not self._answering and self._board is not None:
                    self._board.refresh()
            self._progress, self._question = Progress(await runs.brief(self._client, self._plan, self._lost)), None

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Have the board on the screen until the block ends; what it shows last stays there."""
        self._draw()
        try:
            yield
        finally:
            if self._board is not None:
                self._board.stop()

    def _draw(self) -> None:
        """Begin a board below what is on the screen: one that was stopped would go up as many rows as it had."""
        self._board = Live(
            get_renderable=self._render, console=self._console, refresh_per_second=4, vertical_overflow="crop"
        )
        self._board.start()

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Look at the activities in flight, and at what can be done next, until the block ends."""

        async def look() -> None:
            async for seen in looks(self._client, self._plan):
                self._live = with_blocks(by_step(seen))

        tasks = [asyncio.create_task(look()), asyncio.create_task(self._next.keep(lambda: self._view))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            self._live, self._next = {}, NextSteps(self._client, self._plan)

    async def _update(self) -> None:
        """Bring the view up to date."""
        start = time.monotonic()
        view = self._view
        is_small = view is None or len(view.steps) + view.inside.get("total", 0) <= SMALL_STEPS
        if is_small or self._progress is None or self._progress.view.inside:
            self._progress = Progress(await runs.brief(self._client, self._plan, self._lost))
        else:
            while found := await self._events(self._progress.view.seq):
                if not self._progress.apply(found):
                    self._progress = Progress(await runs.brief(self._client, self._plan, self._lost))
        self._away = ""
        if not is_small:
            await asyncio.sleep(min(LAG_SECONDS, SHARE * (time.monotonic() - start)))

    async def _events(self, since: int) -> list[EventView]:
        return await patiently(
            self._client, self._plan, self._lost, lambda: runs.events(self._client, self._plan, since)
        )

    @property
    def _view(self) -> BriefView | None:
        return self._progress.view if self._progress else None

    def _render(self) -> RenderableType:
        if self._view is None:
            return Text(self._away or self._notice or "Waiting for the plan to answer ...", style="dim")
        footer = self._footer()
        height = _height(self._console)
        view = joined(self._view, self._live)
        below = Group(*footer) if footer else None
        return board(view, datetime.now(UTC), height, below, len(footer), self._console.width)

    def _footer(self) -> list[Text]:
        rows = []
        request = self._live.get("")
        if request and request.attempt > 1:
            rows.append(Text(line(f"LLM request: {in_words(request, datetime.now(UTC))}"), style="dim"))
        if self._view is not None:
            found = self._next.held_up if self._question else self._next.rows
            rows += found(self._view, self._console.width - 1)
        if self._question:
            rows += self._asking(self._question, len(rows))
        return [*rows, *self._remark()]

    def _remark(self) -> list[Text]:
        """What was said last, for a while; and what keeps the board from being up to date, as long as it does."""
        is_news = self._notice and time.monotonic() - self._noticed < NOTICE_SECONDS
        said = [Text(row, "dim") for row in folded([self._notice], self._console.width - 1)] if is_news else []
        return said + [Text(row, "yellow") for row in folded(filter(None, [self._away]), self._console.width - 1)]

    def _asking(self, question: Question, above: int) -> list[Text]:
        """The question: as much of the call as there is room for, and the keys. `above`: rows before it."""
        number = len(self._view.pending) + sum(self._view.more_pending.values()) if self._view else 0
        more = f"  ({number - 1} more)" if number > 1 else ""
        always = [f"[a]lways: {question.item.always}"] if question.item.always else []
        scope = [Text(f"  {row}", "dim") for row in folded(always, self._console.width - 3, " " * 10)]
        steps = len(self._view.steps) if self._view else 0
        besides = more_lines(self._view, self._console.width) if self._view else 0
        around = AROUND_LINES + above + besides + min(steps, LISTED + 1) + len(scope) + len(self._remark())
        _, place = question.window(self._console.width - 1, _height(self._console) - around)
        verb = "Answer" if question.item.is_question else "Approve"
        head = Text.assemble((f"{verb} ", ASKING[1]), (line(question.item.step_id), "bold"), f"?{more}")
        head.append(f"   {place}: space shows more, - goes back" if place else "", ASKING[1])
        return [head, *question.drawn(), Text(f"  {self._answers(question.item)}", style="bold"), *scope]

    def _ask(self) -> None:
        """Show the next question; keys pressed before it are discarded."""
        waiting = {item.step_id for item in self._waiting()}
        item = next((item for item in self._waiting() if item.step_id not in self._later), None)
        if self._put_off is not None and self._put_off not in waiting:  # decided elsewhere: the remark is out of date
            self._notice, self._put_off = "", None
        if self._answering:
            return
        if item is not None and item.step_id in self._compared:
            item = item.model_copy(update={"change": self._compared[item.step_id].change})
        if item is None or self._question is None or self._question.item != item:
            self._question, self._since = Question(item) if item else None, time.monotonic()
            forget_typed()

    def _waiting(self) -> list[Card]:
        return self._view.pending if self._view else []

    def _pressed(self, key: str) -> None:
        if self._question is None or self._answering or time.monotonic() - self._since < READING_SECONDS:
            return
        item = self._question.item
        if key in " -":
            self._question.scroll(1 if key == " " else -1)
        elif key in "lL":
            self._later.add(item.step_id)
            self._say(f"Decide later: {item.commands(self._plan)}", item)
            self._ask()
        elif item.is_question:
            if key in "\r\naA":  # by the key that is shown: `a` means "always" in the question that may follow
                self._question = None
                self._start(self._off_screen(item, answered))
        elif key in "cC" or (key in "eE" and item.takes_args):
            self._question = None
            self._start(self._off_screen(item, commented if key in "cC" else edited))
        elif (key in "yY" or self._is_for_all(key)) and not self._question.is_read:
            self._say("The call is longer than the screen: first read the rest of it, with the space bar.")
        elif key in "yYnN" or self._is_for_all(key):
            every, self._question = self._is_for_all(key), None
            choice = Choice(step_id=item.step_id, by=self._who, remember=every).naming(item)
            self._start(self._decide(choice, approved=key not in "nN"))

    def _start(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _is_for_all(self, key: str) -> bool:
        """Whether a key approves all calls like this one (`Card.always`)."""
        return key in "aA" and self._question is not None and bool(self._question.item.always)

    async def _decide(self, choice: Choice, *, approved: bool) -> None:
        try:
            await runs.decide(self._client, self._plan, choice, approved=approved)
        except PlanError as error:
            self._say(error.message)

    async def _off_screen(self, item: Card, decide: Decide) -> None:
        """Take the board off the screen while the user types: an answer, a reason, other arguments."""
        board, keyboard = self._board, self._keyboard
        if board is None or keyboard is None:
            return
        self._answering = True
        keyboard.stop()
        board.transient = True  # it is drawn again below what is typed
        board.stop()
        try:
            asked = Asked(self._client, self._plan, self._who, item, partial(compared, self._here, queue=self._queue))
            said = await decide(asked, self._console, keyboard.line)
        except PlanError as error:
            said = error.message
        finally:
            self._answering = False
            self._draw()
            keyboard.start()
        if not said:
            self._later.add(item.step_id)
        self._say(said or f"Decide later: {item.commands(self._plan)}", None if said else item)
        self._ask()

    def _answers(self, item: Card) -> str:
        every = "   [a]lways" if item.always else ""
        more = "   [e]dit" if item.takes_args else ""
        keys = "[Enter] answer   [l]ater"
        if not item.is_question:
            keys = f"[y]es   [n]o   [c] no, with a comment{every}{more}   [l]ater"
        return keys if sys.stdin.isatty() else item.commands(self._plan)

    def _lost(self, sentence: str) -> None:
        """Server or worker does not answer: said until it does."""
        self._away = sentence

    def _say(self, sentence: str, put_off: Card | None = None) -> None:
        """Remark something; `put_off`: only as long as this is still to be decided."""
        self._notice, self._noticed = sentence, time.monotonic()
        self._put_off = put_off.step_id if put_off is not None else None


def _height(console: Console) -> int:
    return max(8, console.height - 1)

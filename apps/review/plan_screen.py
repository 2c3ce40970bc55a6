"""The live display of a plan: heading, rows, details of the chosen step, a remark and the key hints.

Only changes are redrawn, so that slow terminals can keep up. The key bindings are in `apps.review.app`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar

from rich.text import Text
from temporalio.client import Client
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from plansurvive.apps.review.around import NOTHING, Around
from plansurvive.apps.review.keys import DECIDE_KEYS, ENDED_KEYS, REVIEW_KEYS, RUNNING_KEYS
from plansurvive.apps.review.nested import shown_steps
from plansurvive.apps.review.rows import change_log, cut, detail, heading, rows
from plansurvive.apps.review.step_form import EditScreen
from plansurvive.client import runs
from plansurvive.client.runs import PlanView
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.run import ENDED
from plansurvive.plans.text.safe_text import safe
from plansurvive.plans.views.models import StepView

LAG_SECONDS, SHARE = 2.0, 5
"""Pause between two queries: SHARE times the duration of the last one, at most LAG_SECONDS."""


Look = Callable[[PlanView, Around], Awaitable[Around]]
"""Finds out what is around a view; given what was around the one before of the same version."""


class Steps(OptionList):
    """The list of steps; posts a message when its width changes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False), Binding("k", "cursor_up", show=False),
    ]  # fmt: skip

    class Resized(Message):
        """The width of the list has changed."""

    def on_resize(self) -> None:
        """Post Resized."""
        self.post_message(self.Resized())


class LivePlan(App[str]):
    """A plan on the screen, updated as it changes."""

    CSS_PATH = "review.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as the base class declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-tall")]  # noqa: RUF012

    def __init__(self, client: Client, plan: str, who: str, tools: Mapping[str, ToolSpec], view: PlanView) -> None:
        super().__init__()
        self.animation_level = "none"
        self.client, self.plan, self.who, self.tools, self.view = client, plan, who, tools, view
        self.look: Look | None = None
        self.around = NOTHING
        self.failure: PlanError | None = None
        self._drawn: list[Text] = []
        self._shown: tuple[Any, ...] = ()
        self._was_at_end = self._is_laid_out = False
        self._since = 0.0
        self._said = self._away = ""

    def compose(self) -> ComposeResult:
        """Heading, steps and detail, remark, keys."""
        yield Static(id="head")
        with Container(id="body"):
            yield Steps(id="steps", markup=False)
            with VerticalScroll(id="detail", can_focus=False):
                yield Static(id="step")
        yield Static(id="said")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Draw the first view and follow the plan."""
        self.query_one("#steps").focus()
        place = self.query_one("#detail")
        self.watch(place, "scroll_y", self._note_end, init=False)
        self.draw()
        self.run_worker(self._follow(), group="follow")

    def on_steps_resized(self) -> None:
        """Redraw the rows at the new width."""
        self.draw()

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """Show the details of the chosen step."""
        if event.option_list.id == "steps":
            self._draw_detail()

    @property
    def steps(self) -> Sequence[StepView]:
        """The rows: the steps in the plan's order, and those inside them that need a look."""
        return shown_steps(self.view)

    @property
    def chosen(self) -> StepView | None:
        """The step the cursor is on."""
        option = self._list.highlighted_option
        return next((step for step in self.steps if option and step.id == option.id), None)

    @property
    def seconds_shown(self) -> float:
        """Seconds since the details on the screen last changed."""
        return time.monotonic() - self._since

    @property
    def is_read(self) -> bool:
        """Whether the end of the details on the screen has been visible."""
        place = self._screen_detail
        return self._is_laid_out and (self._was_at_end or place.scroll_y >= place.max_scroll_y)

    def choose(self, step_id: str) -> None:
        """Put the cursor on a step."""
        index = next((index for index, step in enumerate(self.steps) if step.id == step_id), None)
        if index is not None:
            self._list.highlighted = index

    def say(self, sentence: str) -> None:
        """Show a remark until the next one."""
        self._said = sentence
        self._screen_one("#said").update(Text(safe(sentence)))

    def lost(self, sentence: str) -> None:
        """Server or worker does not answer: a remark until it does."""
        self._away = sentence
        self.say(sentence)

    async def refresh_view(self) -> None:
        """Query the plan and draw what changed."""
        view = await runs.show_patiently(self.client, self.plan, self.lost)
        if self._away and self._said == self._away:
            self.say("")
        self._away = ""
        if self.look is not None and (view != self.view or self.around is NOTHING):
            around = await self.look(view, self.around if view.version == self.view.version else NOTHING)
            if around != self.around:
                self.around = around
                self.draw()
        self.take(view)

    def take(self, view: PlanView) -> None:
        """Draw a newer view; an older one that arrives late is ignored."""
        if view.seq < self.view.seq or view.version < self.view.version:
            return
        if view != self.view:
            self.view = view
            self.draw()
            if isinstance(self.screen, EditScreen):
                self.screen.plan_changed()

    def draw(self) -> None:
        """Redraw what differs from the screen."""
        self._draw_rows()
        self._screen_one("#head").update(heading(self.view, max(20, self.size.width - 2)))
        awaits = bool(self.view.pending or self.view.more_pending)
        keys = ENDED_KEYS if self.view.status in ENDED else DECIDE_KEYS * awaits + RUNNING_KEYS
        self._screen_one("#keys").update(Text(REVIEW_KEYS if self.view.status == "review" else keys))
        self._draw_detail()

    @property
    def _list(self) -> OptionList:
        return self.screen_stack[0].query_one("#steps", OptionList)

    def _screen_one(self, selector: str) -> Static:
        return self.screen_stack[0].query_one(selector, Static)

    def _draw_rows(self) -> None:
        found, width = self._list, self._list.scrollable_content_region.width
        drawn = rows(self.view, max(30, width), self.around)
        ids = [step.id for step in self.steps]
        if ids != [option.id for option in found.options]:
            at, was = found.highlighted or 0, found.highlighted_option
            found.set_options(Option(text, id=name) for text, name in zip(drawn, ids, strict=True))
            keep = was is not None and was.id in ids
            found.highlighted = (ids.index(str(was.id)) if was and keep else min(at, len(ids) - 1)) if ids else None
        else:
            for index, (text, old) in enumerate(zip(drawn, self._drawn, strict=True)):
                if text != old or text.spans != old.spans:
                    found.replace_option_prompt_at_index(index, text)
        self._drawn = drawn

    def _draw_detail(self) -> None:
        step = self.chosen
        shown = (step, self.view.pending, self.view.problems, self.view.draft if step is None else "", self.around)
        if shown == self._shown:
            return
        if self._shown == () or _id(self._shown[0]) != _id(step):
            self.screen_stack[0].query_one("#detail").scroll_home(animate=False)
        self._shown, self._since, self._was_at_end = shown, time.monotonic(), False
        self._is_laid_out = False
        self.call_after_refresh(self._note_laid_out, self._since)
        self._screen_one("#step").update(detail(self.view, step, self.tools, self.around) if step else self._empty())

    def scroll_details(self, by: int) -> None:
        """Scroll the details by some rows, fewer than are visible."""
        place = self._screen_detail
        place.scroll_relative(y=by * max(1, min(5, place.scrollable_content_region.height - 1)), animate=False)

    def _note_laid_out(self, drawn: float) -> None:
        self._is_laid_out = self._is_laid_out or drawn == self._since

    def _note_end(self, at: float) -> None:
        """Remember that the end of the details came into view."""
        self._was_at_end = self._was_at_end or 0 < self._screen_detail.max_scroll_y <= at

    @property
    def _screen_detail(self) -> Widget:
        return self.screen_stack[0].query_one("#detail")

    def _empty(self) -> Text:
        if self.view.status == "draft":
            return Text("The LLM is writing the plan ...")
        problems = "\n".join(f"✗ {safe(each.message)}" for each in self.view.problems)
        return Text(f"The plan has no steps.\n{problems}\n{cut(safe(self.view.draft), 4_000)}")

    def changes_text(self) -> Text:
        """The change log, preceded by the problems of the plan as a whole."""
        wrong = [f"✗ {safe(each.message)}\n" for each in self.view.problems if not each.step_id]
        return Text("".join(wrong), "bold red").append_text(change_log(self.view))

    async def _follow(self) -> None:
        try:
            async for _ in runs.changes(self.client, self.plan, self.lost):
                start = time.monotonic()
                await self.refresh_view()
                await asyncio.sleep(min(LAG_SECONDS, SHARE * (time.monotonic() - start)))
            await self.refresh_view()
        except PlanError as error:
            self.failure = error
            self.exit("failed")


def _id(step: StepView | None) -> str | None:
    return step.id if step else None

"""The review screen: what its keys do. Every change goes to the plan as the same message a script would send.

Nothing is changed here that the plan has not taken: an edit names the version on the screen, and when the plan has
moved on it is refused and the newer one is shown. Approvals name the version too, and count only for what was read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.widgets import OptionList

from client import edits as editing
from client import runs
from client.review.dialogs import AskText, Confirm, PickTool, Reading
from client.review.external_editor import as_text, edits_of, let_edit
from client.review.plan_screen import LivePlan
from client.review.rows import may_edit
from client.review.step_draft import Draft, new_step
from client.review.step_form import EditScreen
from client.runs import Choice
from plans.edits import Edit, MoveStep, RemoveStep, SkipStep, UnskipStep
from plans.errors import InvalidPlan, PlanError
from plans.views.markdown import line

Change = tuple[Edit, str] | None
"""An edit, and what is said when the plan has taken it."""
READING_SECONDS = 0.4
"""Who approves sooner than this after the step came on the screen cannot have read it."""
HELP = """\
up, down, page keys   choose a step
enter      edit it in a form made from the tool's schema
E          edit all its fields in $VISUAL or $EDITOR, as JSON
shift+up, shift+down, or K, J   move it, within what dependencies allow
s          skip it, or take the skip back
a          add a step behind it
x          remove it
r          have the LLM revise what has not begun, with your feedback
b          begin: the review is over, the plan starts or goes on
y, n       approve or deny a step that waits for a person
w          go to the next step that waits
p          pause the plan, or let it go on
c          cancel the plan
l          log of changes
d, u       scroll the step's text down, up
q          leave; the plan waits in review, or goes on if it runs

Marks: ☐ not begun  ▸ running  ✓ completed  ✗ failed  – skipped  ? waits for you  ⚠ asks first
"""


class ReviewApp(LivePlan):
    """A plan on the screen, and the keys that change it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("E", "editor"), Binding("shift+up,K", "move(-1)"), Binding("shift+down,J", "move(1)"),
        Binding("s", "skip"), Binding("a", "add"), Binding("x,delete", "remove"), Binding("r", "regenerate"),
        Binding("b", "begin"), Binding("y", "decide(True)"), Binding("n", "decide(False)"), Binding("w", "waiting"),
        Binding("p", "pause"), Binding("c", "cancel"), Binding("l", "log"), Binding("question_mark", "help"),
        Binding("d", "scroll(1)"), Binding("u", "scroll(-1)"), Binding("q", "leave"),
    ]  # fmt: skip
    leaves_on_begin = False
    """Whether the screen is left when the plan begins: something else follows it then."""
    _kept: tuple[str, str] | None = None
    """What was written in the editor and refused: step and text."""
    _feedback = ""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.reading_seconds = READING_SECONDS
        self._one_at_a_time = asyncio.Lock()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the plan do nothing while something else is on top of it."""
        ours = vars(ReviewApp).get(f"action_{action}") is not None
        return super().check_action(action, parameters) and not (ours and len(self.screen_stack) > 1)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter on a step opens its form."""
        step = self.chosen
        if event.option_list.id != "steps" or step is None:
            return
        if not may_edit(step):
            self.say(f"Step '{step.id}' is {step.status}: only steps that have not begun can be edited.")
            return
        draft = Draft(step, self.view.version, self.tools.get(step.tool))
        self.push_screen(EditScreen(draft, lambda: self.view, self._save))

    @work(exclusive=True)
    async def action_editor(self) -> None:
        """The chosen step in the user's editor."""
        step = self.chosen
        if step is None:
            return
        try:
            file = await editing.plan_file(self.client, self.plan)
            raw = next((each for each in file["steps"] if each["id"] == step.id), {"id": step.id, "tool": step.tool})
            raw = {**raw, "args": step.args}
            kept = self._kept[1] if self._kept and self._kept[0] == step.id else as_text(raw)
            with self.suspend():
                text = let_edit(kept)
            self._kept = (step.id, text)
            edits = edits_of(raw, text)
            if edits:
                await self._save(edits, file.get("version", 1))
            self._kept = None
            self.say(f"Step '{step.id}' was changed." if edits else "Nothing was changed.")
        except SuspendNotSupported:
            self.say("There is no editor in the browser; enter opens the form.")
        except PlanError as error:
            again = " E opens what you wrote again." if self._kept else ""
            self.say(f"Not changed: {error.message}{again}")

    def action_move(self, by: int) -> None:
        """The chosen step one place up or down."""
        self._try(lambda: self._moved(by))

    def action_skip(self) -> None:
        """Skip the chosen step, or take that back."""
        self._try(self._skipped)

    @work(exclusive=True)
    async def action_add(self) -> None:
        """A new step behind the chosen one."""
        tool = await self.push_screen_wait(PickTool(self.tools))
        if tool is None:
            return
        step = new_step(tool, {each.id for each in self.steps})
        after = self.chosen.id if self.chosen else None
        draft = Draft(step, self.view.version, self.tools[tool], is_new=True, after=after)
        await self.push_screen_wait(EditScreen(draft, lambda: self.view, self._save))

    @work(exclusive=True)
    async def action_remove(self) -> None:
        """Take the chosen step out."""
        name = self.chosen.id if self.chosen else ""
        if not name:
            return
        sure = await self.push_screen_wait(Confirm(f"Remove step '{name}'?"))
        if sure:
            self._try(lambda: (RemoveStep(op="remove", step_id=name), f"'{name}' was removed."))

    @work(exclusive=True, group="regenerate")
    async def action_regenerate(self) -> None:
        """Have the LLM revise the plan; feedback that failed is kept."""
        feedback = await self.push_screen_wait(AskText("What is to be different?", self._feedback))
        if feedback is None:
            return
        self._feedback = feedback
        self.say("The LLM revises the plan ... (nothing starts until the answer is there)")
        version = self.view.version
        send = editing.regenerate(self.client, self.plan, feedback, expect_version=version, by=self.who)
        edited = await self._told(send)
        if edited is not None:
            self._feedback = ""
            self.say(f"This is version {edited.version}.")
            rows = Text("".join(f"{line(each)}\n" for each in edited.diff) or "Nothing is different.")
            await self.push_screen_wait(Reading(f"Version {edited.version}: what became different", rows))

    @work(group="begin")
    async def action_begin(self) -> None:
        """End the review. Pressed again it waits for the first time, which is not to be given up half done."""
        async with self._one_at_a_time:
            await self._begin()

    async def _begin(self) -> None:
        if self.leaves_on_begin and self.view.status not in ("draft", "review"):
            self.exit("begun")
        elif self.view.status != "review":
            self.say(f"The plan is {self.view.status}; only a plan in review can begin.")
        elif self.view.problems:
            self.say("The plan has problems; mend the steps marked ✗ first, or regenerate it. l shows all.")
        elif await self._signalled(runs.begin(self.client, self.plan, self.who)):
            self.say("The plan begins.")
            if self.leaves_on_begin:
                self.exit("begun")

    @work(exclusive=True, group="decide")
    async def action_decide(self, approved: bool) -> None:
        """Approve or deny what the chosen step waits for."""
        step = self.chosen
        item = next((each for each in self.view.pending if step and each.step_id == step.id), None)
        if item is None:
            self.say("This step waits for nobody; w goes to the next one that does.")
        elif self.seconds_shown < self.reading_seconds:
            self.say(f"Step '{item.step_id}' has just come up: read it, then press the key again.")
        else:
            choice = Choice(step_id=item.step_id, by=self.who, version=item.version)
            if await self._told(runs.decide(self.client, self.plan, choice, approved=approved)):
                self.say(f"Step '{item.step_id}' was {'approved' if approved else 'denied'}.")

    def action_waiting(self) -> None:
        """The next step that waits for a person."""
        ids = [step.id for step in self.steps]
        here = ids.index(self.chosen.id) if self.chosen else -1
        waiting = sorted((ids.index(item.step_id) for item in self.view.pending), key=lambda at: (at <= here, at))
        if waiting:
            self.choose(ids[waiting[0]])
        else:
            self.say("No step waits for a person.")

    @work(exclusive=True)
    async def action_pause(self) -> None:
        """Pause, or go on."""
        status = self.view.status
        if status == "paused":
            await self._signalled(runs.unpause(self.client, self.plan, self.who))
        elif status == "running":
            await self._signalled(runs.pause(self.client, self.plan, self.who))
        else:
            self.say(f"The plan is {status}; there is nothing to pause.")

    @work(exclusive=True)
    async def action_cancel(self) -> None:
        """End the plan."""
        sure = await self.push_screen_wait(Confirm("Cancel the plan? What is done stays done; nothing else starts."))
        if sure and await self._signalled(runs.cancel(self.client, self.plan)):
            self.say("The plan is cancelled.")

    def action_log(self) -> None:
        """Who changed what."""
        self.push_screen(Reading("Changes", self.changes_text()))

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(Reading("Keys", Text(HELP)))

    def action_scroll(self, by: int) -> None:
        """The text of the chosen step."""
        self.query_one("#detail").scroll_relative(y=by * 5, animate=False)

    def action_leave(self) -> None:
        """Leave the screen; the plan stays as it is."""
        self.exit("left")

    def _moved(self, by: int) -> Change:
        ids, name = [step.id for step in self.steps], self.chosen.id if self.chosen else ""
        place = ids.index(name) + by if name else -1
        if not 0 <= place < len(ids):
            return None
        after = (ids[place - 1] if place else None) if by < 0 else ids[place]
        return MoveStep(op="move", step_id=name, after=after), f"'{name}' was moved."

    def _skipped(self) -> Change:
        step = self.chosen
        if step is None:
            return None
        name = step.id
        if step.status == "skipped":
            return UnskipStep(op="unskip", step_id=name), f"'{name}' is not skipped any more."
        return SkipStep(op="skip", step_id=name), f"'{name}' is skipped; s takes it back."

    @work(group="edit")
    async def _try(self, make: Callable[[], Change]) -> None:
        """Send an edit, say what came of it. One after the other: each is about what the one before left."""
        async with self._one_at_a_time:
            change = make()
            if change is None:
                return
            try:
                await self._save([change[0]], self.view.version)
                self.say(change[1])
            except PlanError as error:
                self.say(_sentence(error))

    async def _save(self, edits: list[Edit], version: int) -> None:
        """Send edits of the version that was looked at; the newest view is on the screen afterwards, refused or not."""
        try:
            await editing.edit(self.client, self.plan, edits, expect_version=version, by=self.who)
        finally:
            await self.refresh_view()

    async def _told(self, sent: Awaitable[Any]) -> Any:
        try:
            found = await sent
        except PlanError as error:
            self.say(_sentence(error))
            found = None
        await self.refresh_view()
        return found

    async def _signalled(self, sent: Awaitable[Any]) -> bool:
        try:
            await sent
        except PlanError as error:
            self.say(_sentence(error))
            return False
        return True


def _sentence(error: PlanError) -> str:
    if isinstance(error, InvalidPlan):
        return "Not changed: " + "; ".join(line(problem.text) for problem in error.problems[:3])
    return f"Not changed: {error.message}"

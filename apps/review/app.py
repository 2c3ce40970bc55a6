"""The review screen: its key bindings and actions. Changes are sent to the plan as updates, as a script would do.

The screen shows only what the plan accepted. An edit names the version on the screen; if the plan is at a newer one, it
rejects the edit and the screen shows that version. Approvals name the version too: they count only for what was read.

Screens are compared as text: pytest-textual-snapshot runs them in an event loop apart from the server, and exact
colours change with releases of Textual.
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

from plansurvive.apps.review.decide import Deciding, refusal_text
from plansurvive.apps.review.dialogs import AskText, Confirm, PickTool, Reading
from plansurvive.apps.review.keys import HELP
from plansurvive.apps.review.nested import why_not_edited
from plansurvive.apps.review.step_form import EditScreen
from plansurvive.apps.review.step_text import as_text, edits_of
from plansurvive.apps.review.undisturbed import undisturbed
from plansurvive.client import runs
from plansurvive.client.differences.plan_diff import PlanDiff
from plansurvive.client.differences.plan_rows import plan_rows
from plansurvive.client.forms.editor import let_edit
from plansurvive.features.editing.step_draft import Draft, new_step
from plansurvive.features.planning.verbs import regenerated
from plansurvive.plans.editing.edits import Edit, MoveStep, RemoveStep, SkipStep, UnskipStep
from plansurvive.plans.errors import PlanError

Change = tuple[Edit, str] | None
"""An edit and the remark to show once the plan has accepted it."""


class ReviewApp(Deciding):
    """A plan on the screen, and the keys that change it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("E", "editor"), Binding("shift+up,K", "move(-1)"), Binding("shift+down,J", "move(1)"),
        Binding("s", "skip"), Binding("a", "add"), Binding("x,delete", "remove"), Binding("r", "regenerate"),
        Binding("b", "begin"), Binding("y", "decide(True)"), Binding("n", "decide(False)"),
        Binding("N", "deny_with_comment"), Binding("A", "always"), Binding("e", "other_args"), Binding("w", "waiting"),
        Binding("W", "withdraw"), Binding("O", "override"),
        Binding("p", "pause"), Binding("c", "cancel"), Binding("l", "log"), Binding("question_mark", "help"),
        Binding("d", "scroll(1)"), Binding("u", "scroll(-1)"), Binding("q", "leave"),
    ]  # fmt: skip
    leaves_on_begin = False
    """Whether to exit when the plan leaves review, because the caller follows it from there."""
    llm_check: Callable[[], Awaitable[None]] | None = None
    """Raises PlanError where no LLM can be asked."""
    _unsaved: tuple[str, str] | None = None
    """Step id and text from the editor that could not be saved; E opens it again."""
    _feedback = ""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._one_at_a_time = asyncio.Lock()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable the plan's keys while a dialog is open."""
        ours = any(f"action_{action}" in vars(kind) for kind in (ReviewApp, Deciding))
        return super().check_action(action, parameters) and not (ours and len(self.screen_stack) > 1)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter on a step opens its form."""
        step = self.chosen
        if event.option_list.id != "steps" or step is None:
            return
        if why := why_not_edited(step, self.plan):
            self.say(why)
            return
        draft = Draft(step, self.view.version, self.tools.get(step.tool))
        self.push_screen(EditScreen(draft, lambda: self.view, self._save))

    @undisturbed("plan")
    async def action_editor(self) -> None:
        """Edit the chosen step in the user's editor."""
        step = self.chosen
        if step is None:
            return
        try:
            file = await runs.plan_file(self.client, self.plan)
            raw = next((each for each in file["steps"] if each["id"] == step.id), {"id": step.id, "tool": step.tool})
            raw = {**raw, "args": step.args}
            shown = self._unsaved[1] if self._unsaved and self._unsaved[0] == step.id else as_text(raw)
            with self.suspend():
                text = let_edit(shown)
            self._unsaved = (step.id, text)
            edits = edits_of(raw, text)
            if edits:
                await self._save(edits, file.get("version", 1))
            self._unsaved = None
            self.say(f"Step '{step.id}' was changed." if edits else "Nothing was changed.")
        except SuspendNotSupported:
            self.say("$EDITOR is not available in the browser; press enter for the form.")
        except PlanError as error:
            again = " Press E to continue with your text." if self._unsaved else ""
            self.say(f"Not changed: {error.message}{again}")

    def action_move(self, by: int) -> None:
        """Move the chosen step one place up or down."""
        self._try(lambda: self._moved(by))

    def action_skip(self) -> None:
        """Skip the chosen step, or undo the skip."""
        self._try(self._skipped)

    @undisturbed("plan")
    async def action_add(self) -> None:
        """Add a step after the chosen one."""
        tool = await self.push_screen_wait(PickTool(self.tools))
        if tool is None:
            return
        step = new_step(tool, {each.id for each in self.steps})
        after = self.chosen.id if self.chosen else None
        draft = Draft(step, self.view.version, self.tools[tool], is_new=True, after=after)
        await self.push_screen_wait(EditScreen(draft, lambda: self.view, self._save))

    @undisturbed("plan")
    async def action_remove(self) -> None:
        """Remove the chosen step."""
        name = self.chosen.id if self.chosen else ""
        if not name:
            return
        if await self.push_screen_wait(Confirm(f"Remove step '{name}'?")):
            self._try(lambda: (RemoveStep(op="remove", step_id=name), f"'{name}' was removed."))

    @undisturbed("regenerate", "The LLM is revising the plan already.")
    async def action_regenerate(self) -> None:
        """Have the LLM revise the plan; if that fails, the feedback is offered again."""
        feedback = await self.push_screen_wait(AskText("What should the LLM change?", self._feedback))
        if feedback is None:
            return
        self._feedback = feedback
        self.say("The LLM is revising the plan ... (no step starts until it has answered)")
        found = await self._sent(self._regenerated(feedback))
        if found is not None:
            self._feedback = ""
            self.say(f"The plan is now at version {found[0].version}.")
            rows = Text("\n".join(plan_rows(found[1])) or "No changes.")
            await self.push_screen_wait(Reading(f"Changes in version {found[0].version}", rows))

    async def _regenerated(self, feedback: str) -> tuple[runs.Edited, PlanDiff]:
        if self.llm_check is not None:
            await self.llm_check()
        version = self.view.version
        return await regenerated(self.client, self.plan, feedback, expect_version=version, by=self.who)

    @work(group="begin")
    async def action_begin(self) -> None:
        """End the review. Not exclusive: a second press waits for the first instead of cancelling it halfway."""
        async with self._one_at_a_time:
            await self._begin()

    async def _begin(self) -> None:
        if self.leaves_on_begin and self.view.status not in ("draft", "review"):
            self.exit("begun")
        elif self.view.status != "review":
            self.say(f"The plan is {self.view.status}; b only works in review.")
        elif self.view.problems:
            self.say("The plan has problems: fix the steps marked ✗, or regenerate it with r. l shows all problems.")
        elif await self._signalled(runs.begin(self.client, self.plan, self.who)):
            self.say("The review is over; the plan runs.")
            if self.leaves_on_begin:
                self.exit("begun")

    @undisturbed("plan")
    async def action_pause(self) -> None:
        """Pause or unpause the plan."""
        status = self.view.status
        if status == "paused":
            await self._signalled(runs.unpause(self.client, self.plan, self.who))
        elif status == "running":
            await self._signalled(runs.pause(self.client, self.plan, self.who))
        else:
            self.say(f"The plan is {status}; only a running plan can be paused.")

    @undisturbed("plan")
    async def action_cancel(self) -> None:
        """Cancel the plan, after a confirmation."""
        sure = await self.push_screen_wait(Confirm("Cancel the plan? Completed steps are not undone."))
        if sure and await self._signalled(runs.cancel(self.client, self.plan)):
            self.say("Cancelling the plan; running steps clean up first.")

    def action_log(self) -> None:
        """Show the change log."""
        self.push_screen(Reading("Changes", self.changes_text()))

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(Reading("Keys", Text(HELP)))

    def action_scroll(self, by: int) -> None:
        """Scroll the details of the chosen step."""
        self.scroll_details(by)

    def action_leave(self) -> None:
        """Leave the screen; the plan is not affected."""
        self.exit("left")

    def _moved(self, by: int) -> Change:
        ids, name = [step.id for step in self.view.steps], self.chosen.id if self.chosen else ""
        place = ids.index(name) + by if name in ids else -1
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
            return UnskipStep(op="unskip", step_id=name), f"'{name}' is no longer skipped."
        return SkipStep(op="skip", step_id=name), f"'{name}' is skipped; s undoes it."

    @work(group="edit")
    async def _try(self, make: Callable[[], Change]) -> None:
        """Send an edit and show the result. One at a time, because each edit builds on the one before."""
        async with self._one_at_a_time:
            change = make()
            if change is None:
                return
            try:
                self.say("  ! ".join([change[1], *await self._save([change[0]], self.view.version)]))
            except PlanError as error:
                self.say(refusal_text(error))

    async def _save(self, edits: list[Edit], version: int) -> list[str]:
        """Send edits of a version; returns warnings. The newest view is shown afterwards, also after a rejection."""
        try:
            return (await runs.edit(self.client, self.plan, edits, expect_version=version, by=self.who)).warnings
        finally:
            await self.refresh_view()

    async def _signalled(self, sent: Awaitable[Any]) -> bool:
        try:
            await sent
        except PlanError as error:
            self.say(refusal_text(error))
            return False
        return True

"""Decides about steps from the review screen: yes, no, no with a comment, always, other arguments, an answer.

A decision names the digest of the call on the screen, and counts only once all of the call was shown.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from plansurvive.apps.review.answering import answered
from plansurvive.apps.review.dialogs import Approve, AskText
from plansurvive.apps.review.other_args import Compare, approved_with_others
from plansurvive.apps.review.plan_screen import LivePlan
from plansurvive.apps.review.undisturbed import undisturbed
from plansurvive.client import runs
from plansurvive.client.runs import Choice
from plansurvive.plans.errors import InvalidPlan, PlanError
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card

READING_SECONDS = 0.4
"""Approvals sooner than this after the step appeared are ignored: too soon to have read it."""


class Deciding(LivePlan):
    """A plan on the screen, and the keys that decide about its steps."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.reading_seconds = READING_SECONDS
        self.compare: Compare | None = None
        self._typed_args: dict[str, dict[str, Any]] = {}

    @undisturbed("decide")
    async def action_decide(self, approved: bool) -> None:
        """Approve or deny the chosen step."""
        await self._decide(approved)

    @undisturbed("decide")
    async def action_deny_with_comment(self) -> None:
        """Deny the chosen step, and say why."""
        await self._decide(False, has_comment=True)

    @undisturbed("decide")
    async def action_always(self) -> None:
        """Approve the chosen step and all calls like it, once its scope was shown."""
        await self._decide(True, always=True)

    @undisturbed("decide")
    async def action_other_args(self) -> None:
        """Change the arguments of the chosen step's call, and approve it with those once all of it was shown."""
        item = self._asked
        if item is None:
            self.say("This step is not awaiting approval; enter edits one that has not started.")
        elif not item.is_call:
            self.say("This is not about a call of the step's tool: it has no arguments to change.")
        elif item.as_asked:
            self.say("Who asks makes this call itself, as it is shown: y approves it, n denies it.")
        else:
            try:
                self.say(await approved_with_others(self, item, self._typed_args, self.compare))
            except PlanError as error:
                self.say(f"Not approved: {error.message}")

    @undisturbed("decide")
    async def action_withdraw(self) -> None:
        """Take back one's own decision about the chosen step."""
        step = self.chosen
        if step is None:
            return
        said = await self._sent(runs.withdraw(self.client, self.plan, step.id, by=self.who))
        if said is not None:
            self.say(f"{said[:1].upper()}{said[1:]}.")

    @undisturbed("decide")
    async def action_override(self) -> None:
        """Approve the chosen step alone, in place of all who must, with a reason."""
        item = self._asked
        if item is None or not any(way.option == "override" for way in item.ways(Viewer(self.who))):
            self.say("No rule lets you approve this step alone.")
        elif self.is_read or await self._is_approved(item, always=False):
            await self._overridden(item)

    async def _overridden(self, item: Card) -> None:
        question = f"Approve step '{line(item.step_id)}' alone? All whom the plan notifies learn of it. Why now?"
        why = await self.push_screen_wait(AskText(question))
        if why is None:
            return
        choice = Choice(step_id=item.step_id, by=self.who, override=True, comment=why.strip()[:2_000]).naming(item)
        if item not in self.view.pending:
            self.say(f"Step '{item.step_id}' has changed in the meantime: read it again.")
        elif await self._sent(runs.decide(self.client, self.plan, choice, approved=True)):
            self.say(f"Step '{item.step_id}' was approved by {self.who} alone.")

    @property
    def _asked(self) -> Card | None:
        """What the chosen step asks; None if it asks nothing."""
        step = self.chosen
        return next((each for each in self.view.pending if step and each.step_id == step.id), None)

    async def _decide(self, approved: bool, *, has_comment: bool = False, always: bool = False) -> None:
        item = self._asked
        if item is None:
            self.say("This step is not awaiting approval; w goes to the next one that is.")
        elif self.seconds_shown < self.reading_seconds:
            self.say(f"Step '{item.step_id}' has just appeared: read it, then press the key again.")
        elif item.is_question:
            await self._sent(answered(self, item, approved))
        elif always and not item.always:
            self.say("This cannot be approved for further calls; y approves it once.")
        elif not approved or (self.is_read and not always) or await self._is_approved(item, always=always):
            choice = Choice(step_id=item.step_id, by=self.who, remember=always).naming(item)
            if has_comment:
                why = await self.push_screen_wait(AskText(f"Why is step '{line(item.step_id)}' denied?"))
                if why is None:
                    return
                choice = choice.model_copy(update={"comment": why.strip()[:2_000]})
            if item not in self.view.pending:
                self.say(f"Step '{item.step_id}' has changed in the meantime: read it again.")
            elif (made := await self._sent(runs.decide(self.client, self.plan, choice, approved=approved))) is not None:
                more = f"; {made.missing} more must approve it, W takes yours back" if approved and made.missing else ""
                self.say(f"Step '{item.step_id}' was {'approved' if approved else 'denied'}{more}.")

    async def _is_approved(self, item: Card, *, always: bool) -> bool:
        return await self.push_screen_wait(Approve(self.around.card(item), always=always))

    def action_waiting(self) -> None:
        """Go to the next step awaiting approval."""
        ids, chosen = [step.id for step in self.steps], self.chosen
        here, asked = ids.index(chosen.id) if chosen else -1, {item.step_id for item in self.view.pending}
        waiting = sorted((at for at, name in enumerate(ids) if name in asked), key=lambda at: (at <= here, at))
        self.choose(ids[waiting[0]]) if waiting else self.say("No step is awaiting approval.")

    async def _sent(self, request: Awaitable[Any]) -> Any:
        try:
            found = await request
        except PlanError as error:
            self.say(refusal_text(error))
            found = None
        await self.refresh_view()
        return found


def refusal_text(error: PlanError) -> str:
    """Why the plan did not take something."""
    if isinstance(error, InvalidPlan):
        return "Not changed: " + "; ".join(line(problem.text) for problem in error.problems[:3])
    return f"Not changed: {error.message}"

"""Answers a question from the review screen: asks for a text until it fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plansurvive.apps.review.dialogs import AskText
from plansurvive.client import runs
from plansurvive.plans.definition.questions import about, as_typed, has_default, misfit, value_of
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import Card

if TYPE_CHECKING:
    from plansurvive.apps.review.plan_screen import LivePlan


async def answered(screen: LivePlan, item: Card, wanted: bool) -> bool:
    """Ask for the answer and send it; False if the user leaves, or does not want to answer. Raises as `runs.answer`."""
    text: str | None = as_typed(item.args["default"]) if has_default(item.args) else ""
    heading = f"Answer of step '{line(item.step_id)}': {line(about(item.args))}"
    while wanted and (text := await screen.push_screen_wait(AskText(heading, text or ""))) is not None:
        value = value_of(item.args, text)
        why = misfit(item.args, value)
        if not why:
            by, digest = screen.who, item.digest or None
            screen.say(await runs.answer(screen.client, screen.plan, item.step_id, value, by=by, digest=digest))
            return True
        heading = f"{line(why)}. Answer of step '{line(item.step_id)}':"
    screen.say("A question is answered with y; s skips its step.")
    return False

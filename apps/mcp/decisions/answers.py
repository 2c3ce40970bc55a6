"""From a person's reply to a request to the decision of the plan: approve, deny, answer, begin, or cancel a draft.

Only what was asked can be decided, on exactly what was shown: the key names it, and the digest or version goes with the
decision. A reply to anything else is ignored. What a plan does not accept is asked again, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from temporalio.client import Client

from plansurvive.apps.mcp.common.host import Author
from plansurvive.apps.mcp.decisions.asks import (
    ALWAYS,
    BEGIN,
    COMMENT,
    DECISION,
    DENY,
    LATER,
    MAX_COMMENT,
    REVIEW,
    Ask,
)
from plansurvive.apps.mcp.decisions.forms import AnswerForm
from plansurvive.apps.mcp.decisions.open import Open
from plansurvive.apps.mcp.decisions.replies import Replied, Replies
from plansurvive.client import runs
from plansurvive.client.decisions import Choice
from plansurvive.client.errors import NoWorker, PlanClosed
from plansurvive.client.forms.texts import Unreadable
from plansurvive.plans.errors import Refused
from plansurvive.runtime.settings import Settings

ACCEPT, DECLINE, CANCEL = "accept", "decline", "cancel"
"""What a person does with an elicitation (MCP 2026-07-28, client/elicitation)."""
_GONE = frozenset((
    "ALREADY_DECIDED", "STALE_DIGEST", "STALE_VERSION", "NOT_IN_REVIEW", "UNKNOWN_STEP", "PLAN_CLOSED", "TOO_LATE",
    "NONE_AWAITS", "NOT_A_QUESTION",
))  # fmt: skip
"""Refusals that mean that nobody asks this any more: somebody was faster, or it asks something else now."""


class NotAccepted(Exception):
    """A reply that cannot be the decision; its text says why."""


async def settle(
    client: Client, settings: Settings, asked: Sequence[Open], responses: Mapping[str, Any], author: Author
) -> list[str]:
    """Decide what has been replied to. Returns sentences about it, for people; ignored replies have none.

    `asked`: what is asked at this moment; `responses`: replies by key of their request. Raises NotConnected.
    """
    said, replies = list[str](), Replies(settings)
    for each in asked:
        if each.key not in responses:
            continue
        with replies.take(each.ask.plan_id, each.ask.base) as held:
            if held is None or held[0].count != each.replied.count or held[0].state == "settled":
                continue  # another process has it, or had it: the key has been replied to
            before, record = held
            text, after = await _one(client, each.ask, responses[each.key], author, before)
            record(after)
        said += [text] if text else []
    return said


async def _one(client: Client, ask: Ask, response: Any, author: Author, before: Replied) -> tuple[str, Replied]:
    """Send the decision in one reply. Returns what to say about it, and what is known of the request then."""
    what = f"'{ask.step_id}'" if ask.step_id else "the plan"
    action = response.get("action") if isinstance(response, Mapping) else None
    content = response.get("content") if isinstance(response, Mapping) else None
    if action in (DECLINE, CANCEL):
        return f"{what}: not decided here; it still waits", before.put_off()
    try:
        if action != ACCEPT or not isinstance(content, Mapping):
            raise NotAccepted("the reply is not that of a form that was filled in")
        said = await _sent(client, ask, content, author)
        return (said, before.settled()) if said else (f"{what}: to be decided later", before.put_off())
    except (NotAccepted, Unreadable) as error:
        return f"{what}: {error}", before.refused(str(error))
    except NoWorker as error:  # it may be lost before a worker takes it: then the person is asked again
        return f"{what}: {error.message}", before.refused(error.message)
    except (Refused, PlanClosed) as error:
        if error.code in _GONE:
            return "", before.settled()
        return f"{what}: {error.message}", before.refused(error.message)


async def _sent(client: Client, ask: Ask, content: Mapping[str, Any], author: Author) -> str:
    """Send the decision; returns the plan's sentence, empty if the person decides later. Raises as `_one` catches."""
    if ask.form is not None:
        return await _answer(client, ask, ask.form, content, author)
    verb, comment = str(content.get(DECISION)), content.get(COMMENT) or ""
    allowed = [each["const"] for each in ask.schema["properties"][DECISION]["oneOf"]]
    if verb not in allowed or not isinstance(comment, str):
        raise NotAccepted(f"choose one of: {', '.join(allowed)}")
    if verb == LATER:
        return ""
    if ask.kind == REVIEW:
        return await _reviewed(client, ask, verb, author)
    choice = Choice(step_id=ask.step_id, comment=comment.strip()[:MAX_COMMENT], remember=verb == ALWAYS, **author)
    choice = choice.model_copy(update={"digest": ask.digest} if ask.digest else {"version": ask.version})
    return await (runs.deny if verb == DENY else runs.approve)(client, ask.plan_id, choice)


async def _answer(client: Client, ask: Ask, form: AnswerForm, content: Mapping[str, Any], author: Author) -> str:
    value = form.value(content)
    if why := form.misfit(value):
        raise NotAccepted(why)
    return await runs.answer(client, ask.plan_id, ask.step_id, value, digest=ask.digest or None, **author)


async def _reviewed(client: Client, ask: Ask, verb: str, author: Author) -> str:
    if verb == BEGIN:
        return await runs.begin(client, ask.plan_id, version=ask.version, **author)
    try:
        await runs.cancel(client, ask.plan_id)
    except PlanClosed:
        return "the plan has ended already"
    return "rejected: the plan is cancelled"

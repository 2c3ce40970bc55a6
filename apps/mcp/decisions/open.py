"""What waits for a person in a plan, and in the agents and plans below it, at this moment: as requests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio.client import Client

from plansurvive.apps.mcp.common.rules import Deciding, may_ask
from plansurvive.apps.mcp.decisions.asks import Ask, ask_of, ask_to_begin
from plansurvive.apps.mcp.decisions.replies import Replied, Replies
from plansurvive.client.ids import plan_id
from plansurvive.client.rpc import plan_file
from plansurvive.client.verbs.calls import with_values
from plansurvive.client.verbs.pending import Pending, of_view
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.views.models import BriefView
from plansurvive.runtime.settings import Settings

PATIENCE = 4.0
"""Seconds a plan below may take to answer."""
MAX_ASKED = 20
"""Requests at the same time; the others come up once these are decided."""


@dataclass(frozen=True)
class Open:
    """One request, and what was replied to it before."""

    ask: Ask
    replied: Replied

    @property
    def key(self) -> str:
        """The key of the request."""
        return self.ask.key(self.replied.count)


@dataclass(frozen=True)
class Waiting:
    """What waits for a person."""

    asked: Sequence[Open] = ()
    """What the person may be asked here, oldest first."""
    elsewhere: Sequence[Pending] = ()
    """What they decide elsewhere."""
    review: bool = False
    """The plan is in review, which is ended elsewhere."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self.asked and not self.elsewhere and not self.review

    @property
    def count(self) -> int:
        """How many decisions wait."""
        return len(self.asked) + len(self.elsewhere) + self.review


async def waiting(
    client: Client, settings: Settings, plan: str, view: BriefView, queue: str, deciding: Deciding,
    *, again: bool = False,
) -> Waiting:  # fmt: skip
    """What waits in a plan with this view. `again`: also what the person has put off. Raises as `client.rpc.ask`.

    `deciding`: "elsewhere" for a client that cannot ask.
    """
    replies, asked, elsewhere = Replies(settings), list[Open](), list[Pending]()
    for item in await of_view(client, plan, view, queue, PATIENCE):
        found = None
        if may_ask(deciding, item.kind) and len(asked) < MAX_ASKED:
            whole = await with_values(item, settings)
            found = None if _is_hidden(whole) else _open(ask_of(whole), replies, again)
        if found is None:
            elsewhere.append(item)
        else:
            asked.append(found)
    review = await _review(client, plan, view) if view.status is PlanStatus.REVIEW else None
    if review is None:
        return Waiting(asked, elsewhere, view.status is PlanStatus.REVIEW)
    begun = _open(review, replies, again) if may_ask(deciding, review.kind) else None
    return Waiting([*asked, begun] if begun else asked, elsewhere, begun is None)


def _open(ask: Ask, replies: Replies, again: bool) -> Open | None:
    """The request if the person may be asked it."""
    replied = replies.of(ask.plan_id, ask.base)
    if again and replied.state == "put off":
        replied = replied.model_copy(update={"state": "open"})
    return Open(ask, replied) if replied.is_open and not ask.is_too_long else None


def _is_hidden(item: Pending) -> bool:
    """Whether a part of the call is stored where this machine cannot read it: it would be decided on unseen."""
    return any(name not in item.values for name in item.large)


async def _review(client: Client, plan: str, view: BriefView) -> Ask:
    """The request to begin a draft."""
    text = json.dumps(await plan_file(client, plan), ensure_ascii=False, indent=2)
    return ask_to_begin(plan_id(plan), view.title, view.version, text)

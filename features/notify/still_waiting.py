"""Asks plans whether decisions still wait, and what they are about now: queries, which add nothing to a history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.notify.failures import NotDelivered
from plansurvive.features.notify.messages import Item
from plansurvive.features.notify.outbox import Notice
from plansurvive.features.notify.rules import REVIEW
from plansurvive.plans.in_views import ViewSet
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.queries import BRIEF

TIMEOUT = timedelta(seconds=10)
PATIENCE = 3
"""Attempts in which a plan must answer; then the message goes without its answer."""


async def items_of(client: Client, notices: Sequence[Notice], attempt: int, views: ViewSet) -> list[Item]:
    """What there is still to say, in order. Raises NotDelivered if a plan does not answer, until attempt PATIENCE."""
    by_plan = dict[str, list[Notice]]()
    for notice in notices:
        if notice.waiting is not None:
            by_plan.setdefault(notice.subject.workflow_id, []).append(notice)
    found = dict[str, Item]()
    for workflow_id, asked in by_plan.items():
        found |= await _in_plan(client, workflow_id, asked, attempt, views)
    items = [found.get(each.id, Item(each)) for each in notices if each.waiting is None or each.id in found]
    return [item._replace(views=views) for item in items]


async def _in_plan(
    client: Client, workflow_id: str, notices: Sequence[Notice], attempt: int, views: ViewSet
) -> dict[str, Item]:
    """Those that still wait in one plan, by id."""
    handle = client.get_workflow_handle(workflow_id)
    try:
        described = await handle.describe(rpc_timeout=TIMEOUT)
        if described.status is not WorkflowExecutionStatus.RUNNING:
            return {}
        view: dict[str, Any] = await handle.query("plan", BRIEF, rpc_timeout=TIMEOUT)
        pending = {each.step_id: each for each in _cards(view.get("pending"), views)}
        found = dict[str, Item]()
        for notice in notices:
            waiting = notice.waiting
            if waiting is None:
                continue
            if waiting.kind == REVIEW:
                still = view.get("status") == "review"
                found |= {notice.id: Item(notice)} if still else {}
                continue
            shown = pending.get(waiting.step_id)
            if shown is None and view.get("morePending"):
                one = await handle.query("call", {"stepId": waiting.step_id}, rpc_timeout=TIMEOUT)
                shown = next(iter(_cards([one] if one.get("kind") != "early" else [], views)), None)
            if shown is not None and shown.digest == waiting.digest:
                found[notice.id] = Item(notice, shown)
        return found
    except (RPCError, WorkflowQueryFailedError) as error:
        if isinstance(error, RPCError) and error.status is RPCStatusCode.NOT_FOUND:
            return {}
        if attempt < PATIENCE:
            raise NotDelivered(f"the plan {workflow_id} does not answer") from error
        return {notice.id: Item(notice) for notice in notices}


def _cards(found: Any, views: ViewSet) -> list[Card]:
    """The pending decisions in an answer; of another version of the worker, those that can be read."""
    cards = []
    for each in found if isinstance(found, list) else []:
        try:
            cards.append(Card.of(views, **{k: v for k, v in each.items() if k in _FIELDS}))
        except (ValidationError, AttributeError):
            continue
    return cards


_FIELDS = frozenset(each.alias or name for name, each in Card.model_fields.items())

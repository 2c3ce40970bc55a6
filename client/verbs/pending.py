"""The decisions that all running plans and agents await."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

from temporalio.client import Client

from plansurvive.client.children.naming import asking
from plansurvive.client.errors import BadPlanId, NoWorker
from plansurvive.client.ids import plan_id
from plansurvive.client.listing import Listed, list_plans
from plansurvive.client.rpc import STUCK, ask_view, describe
from plansurvive.plans.errors import PlanError
from plansurvive.plans.flow.ids import pattern_of
from plansurvive.plans.in_views import Viewer
from plansurvive.plans.text.lists import some
from plansurvive.plans.views.models import BriefView, listed_steps
from plansurvive.plans.views.models.card import Card
from plansurvive.plans.views.next_actions import worker_command
from plansurvive.plans.views.queries import BRIEF
from plansurvive.runtime.task_queues import listeners

PATIENCE = 10.0
"""Default seconds a plan may take to answer."""
AT_ONCE = 16
"""Plans queried concurrently."""
TITLE = 80
"""Characters of a title that a card's head shows."""
NAMED = 5
"""Maximum plans named in a message about plans that did not answer."""
UNSPOKEN = (NoWorker.code, STUCK, "PLAN_NOT_FOUND", "QUERY_FAILED", BadPlanId.code)
"""Error codes that concern one plan only; the others are still queried."""


class Pending(Card):
    """A step awaiting an approval or an answer, with all that is needed to decide on it.

    Pass its `version` as `Choice.version` to decide on exactly these arguments. `queue`: the task queue of the call.
    """

    plan_id: str
    title: str = ""
    """Title of the plan."""
    more: int = 0
    """Further decisions about other items of the same step, which are not listed."""

    @property
    def key(self) -> str:
        """Names exactly what is asked: another call of the step, or the same asked again, has another key."""
        since = self.since.isoformat() if self.since else ""
        bound = (self.plan_id, self.step_id, self.kind, self.digest or f"version {self.version}", since)
        return hashlib.sha256("\0".join(bound).encode()).hexdigest()[:40]

    @property
    def asked_by(self) -> str:
        """Who asks, in a sentence for where the plan is named already: without its id and title.

        A title that is too long to be named there whole stays.
        """
        title = f" ({json.dumps(self.title, ensure_ascii=False)})" if self.title else ""
        known = [f"{kind} {self.plan_id}{title}, " for kind in ("plan", "agent")] if len(self.title) <= TITLE else []
        own = next((each for each in known if self.asker.startswith(each)), "")
        return self.asker.removeprefix(own) if own or not self.asker else f"asked by {self.asker}"


async def pending(
    client: Client, say: Callable[[str], None] = lambda _: None, *, plan: str | None = None, to: str | None = None,
    patience: float = PATIENCE, candidates: Sequence[Listed] | None = None,
) -> AsyncIterator[Pending]:  # fmt: skip
    """The steps awaiting an approval or an answer in all running plans and agents, or in one `plan` and its children.

    `to`: only the questions that name this person, in capitals or not. `patience`: seconds a plan may take to answer.
    Plans that do not answer are omitted; at the end, `say` is called with the reasons. `candidates`: only these of all
    plans. Raises NotConnected.
    """
    async for item in _pending_in_all(client, say, plan, patience, candidates):
        if to is None or (item.to and not item.barred(Viewer(to))):
            yield item


def number_to_decide(items: Iterable[Pending]) -> int:
    """How much there is to decide: all items of one step in a loop count as one."""
    return len({(item.plan_id, pattern_of(item.step_id)) for item in items})


def number_in(view: BriefView) -> int:
    """The same of one plan, with the agents and plans below it, as far as they have reported it."""
    own = {(view.id, pattern_of(item.step_id)) for item in view.pending}
    own |= {(view.id, pattern) for pattern in view.more_pending}
    below, more = set[tuple[str, str]](), 0
    for each in listed_steps(view.steps):
        if each.child:
            below |= {(asked.plan_id, pattern_of(asked.step_id)) for asked in each.child.pending}
            more += each.child.more
        if each.agent_asks:
            below |= {(each.agent_asks.agent_id, pattern_of(name)) for name in each.agent_asks.step_ids}
    return len(own | below) + more


async def _pending_in_all(
    client: Client, say: Callable[[str], None], plan: str | None, patience: float, candidates: Sequence[Listed] | None
) -> AsyncIterator[Pending]:
    is_silent: dict[str, bool] = {}
    """By task queue, whether it has no worker that answers."""
    unserved: list[Listed] = []
    failed: list[PlanError] = []
    if plan is not None:
        for item in await of_plan(client, plan, patience):
            yield item
        return
    if candidates is None:
        listed_plans = list_plans(client, running=True, agents=True, awaiting=True)
        candidates = [listed async for listed in listed_plans if listed.waiting != []]
    for start in range(0, len(candidates), AT_ONCE):
        batch = candidates[start : start + AT_ONCE]
        for queue in {listed.queue for listed in batch} - is_silent.keys():
            is_silent[queue] = not await listeners(client, queue)
        asked = [listed for listed in batch if not is_silent[listed.queue]]
        results = await asyncio.gather(*(_of(client, listed, patience) for listed in asked))
        answers = {listed.plan_id: answer for listed, answer in zip(asked, results, strict=True)}
        is_silent |= _gone(asked, answers)
        for listed in batch:
            answer = answers.get(listed.plan_id)
            if isinstance(answer, list):
                for item in answer:
                    yield item
            elif is_silent[listed.queue] or answer is None:
                unserved.append(listed)
            elif answer.code != "PLAN_NOT_FOUND":
                failed.append(answer)
    if unserved:
        starts = list(dict.fromkeys(worker_command(listed.queue) for listed in unserved))
        plans = some([listed.plan_id for listed in unserved], NAMED)
        say(f"No worker answers for these plans: {plans}. Start one: {', '.join(starts[:NAMED])}")
    for error in failed[:NAMED]:
        say(error.message)
    if len(failed) > NAMED:
        say(f"... and {len(failed) - NAMED} more plans did not answer")


async def _of(client: Client, listed: Listed, patience: float) -> list[Pending] | PlanError:
    try:
        view = await ask_view(client, listed.plan_id, BriefView, "plan", BRIEF, patience=patience)
    except PlanError as error:
        if error.code not in UNSPOKEN:
            raise
        return error
    return _all_of(view, listed.plan_id, listed.queue)


async def of_plan(client: Client, plan: str, patience: float, *, children: bool = True) -> list[Pending]:
    """The pending decisions of one plan, which the server's index need not know yet. Raises as `ask`.

    `children`: with those of the plans below it.
    """
    view = await ask_view(client, plan, BriefView, "plan", BRIEF, patience=patience)
    queue = (await describe(client, plan)).task_queue
    return await of_view(client, plan, view, queue, patience, children=children)


async def of_view(
    client: Client, plan: str, view: BriefView, queue: str, patience: float, *, children: bool = True
) -> list[Pending]:
    """The same of a plan whose view and task queue are known. Raises as `ask`, for the plans below it."""
    found = _all_of(view, plan_id(plan), queue)
    for child, whole in asking(view.steps).items() if children else ():
        found += await of_plan(client, child, patience, children=whole)
    return found


def _all_of(view: BriefView, plan: str, queue: str) -> list[Pending]:
    """The pending decisions of a view; those that it only counts, as `more` of the last one of their kind."""
    found = [_pending(plan, queue, view.title, item) for item in view.pending]
    last = {pattern_of(item.step_id): index for index, item in enumerate(found)}
    for pattern, count in view.more_pending.items():
        if pattern in last:
            found[last[pattern]] = found[last[pattern]].model_copy(update={"more": count})
    return found


def _pending(plan: str, queue: str, title: str, item: Card) -> Pending:
    found = dict(item) | {"queue": item.queue or queue, "unusual": item.warnings}
    return Pending.of(item.views, plan_id=plan, title=title, **found)


def _gone(asked: Sequence[Listed], answers: Mapping[str, list[Pending] | PlanError]) -> dict[str, bool]:
    """Queues for which no plan answered: their workers have stopped, so the next batch does not wait for them again."""
    queues = {listed.queue for listed in asked}
    answered = {listed.queue for listed in asked if not _is_unserved(answers[listed.plan_id])}
    return dict.fromkeys(queues - answered, True)


def _is_unserved(answer: list[Pending] | PlanError) -> bool:
    return isinstance(answer, NoWorker) and answer.code == NoWorker.code

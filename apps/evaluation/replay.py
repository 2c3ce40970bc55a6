"""The verb `replay`: plans and agents, with the agents and plans that worked for them, side by side within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.apps.evaluation.asking import Spending
from plansurvive.apps.evaluation.playing import Asking, NothingToReplay, Play
from plansurvive.apps.evaluation.record import RecordGone, read
from plansurvive.apps.evaluation.report import Evaluation, Replayed, Unreadable, summed
from plansurvive.client.ids import workflow_id
from plansurvive.client.listing import AGENTS_TOO
from plansurvive.client.rpc import translated
from plansurvive.runtime.errors import KeyMissing
from plansurvive.runtime.search_attributes import OF_NO_PLAN

SIDE_BY_SIDE = 4
"""Replays at a time, unless told otherwise."""
MOST_RUNS = 10_000
"""Runs of one evaluation."""


async def replay(
    client: Client,
    plan: str | Sequence[str],
    asking: Asking | None = None,
    *,
    spending: Spending | None = None,
    goes_on: bool = False,
    leaves_out: bool = False,
    side_by_side: int = SIDE_BY_SIDE,
    told: Callable[[Replayed], None] = lambda _: None,
    before: Callable[[Sequence[Replayed]], bool] = lambda _: True,
) -> Evaluation:
    """Replay plans or agents, with all agents and plans that worked for them; no tool is called, nothing is written.

    Without `asking` the recorded answers are played: what differs then, differs because of this version. With it, the
    LLM is asked anew. `spending`: prices and limits. `goes_on`: a call that the record has no answer to fails, and the
    agent goes on; else its replay ends there. `leaves_out`: a record that cannot be read is named and the others are
    replayed; else it raises. `told` is called after each run; `before`, with all checks, before the
    first LLM request: False ends it there.

    Raises RecordGone for a run that is not on the server any more, NothingToReplay if nothing asked an LLM, KeyMissing
    for a record that cannot be decrypted here. One that this version cannot play has an `error`.
    """
    spent = spending or Spending()
    unread: list[Unreadable] | None = [] if leaves_out else None
    plays = await _plays(client, [plan] if isinstance(plan, str) else plan, spent, unread, goes_on=goes_on)
    if not plays and not unread:
        raise NothingToReplay("nothing to replay: no LLM wrote these plans, and none of their steps is an agent")
    checks = [await each.check() for each in plays]
    if asking is None or not before(checks):
        for check in checks:
            told(check)
        return evaluation(checks, None, unread or ())
    return evaluation(await _anew(plays, checks, asking, spent, side_by_side, told), asking, unread or ())


async def _anew(
    plays: Sequence[Play], checks: Sequence[Replayed], asking: Asking, spent: Spending, side_by_side: int,
    told: Callable[[Replayed], None],
) -> list[Replayed]:  # fmt: skip
    free = asyncio.Semaphore(side_by_side)

    async def one(play: Play, check: Replayed) -> Replayed:
        async with free:
            found = await play.anew(check, asking, spent)
        told(found)
        return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(play, check)) for play, check in zip(plays, checks, strict=True)]
    return [task.result() for task in tasks]


def evaluation(runs: Sequence[Replayed], asking: Asking | None, unreadable: Sequence[Unreadable] = ()) -> Evaluation:
    """What the replays come to together."""
    asked = asking is not None and any(each.anew or each.error for each in runs)
    return Evaluation(
        identical=not unreadable and all(each.identical for each in runs),
        model=asking.model.model or "" if asking and asked else "",
        prompt_set=asking.prompts.name if asking and asked else "",
        runs=list(runs),
        was=summed(each.check.was for each in runs),
        now=summed(each.shown.now for each in runs),
        same=sum(each.identical for each in runs),
        unreadable=list(unreadable),
    )


async def _plays(
    client: Client, plans: Sequence[str], spent: Spending, unread: list[Unreadable] | None, *, goes_on: bool
) -> list[Play]:
    """The runs that asked an LLM, those that were named first, each followed by its children.

    `unread` takes those whose records cannot be read; None: the first one raises.
    """
    found, seen = list[Play](), set[str]()
    left = [(workflow_id(each), "") for each in reversed(plans)]
    while left and len(seen) < MOST_RUNS:
        name, parent = left.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            record = await read(client, name)
        except (RecordGone, KeyMissing) as error:
            if unread is None:
                raise
            unread.append(Unreadable(id=name, code=error.code, error=error.message))
            continue
        play = Play(client.data_converter, record, spent.cost_of, goes_on=goes_on, parent=parent)
        if play.asks:
            found.append(play)
        left += [(child, play.name) for child in reversed(play.record.children)]
    return found


async def latest(client: Client, number: int) -> list[str]:
    """The workflow ids of the newest agents and plans that have ended and no other plan started, newest first.

    Of plans, only those that asked an LLM or ran an agent can be replayed; which they are, their records say.
    Raises NotConnected.
    """
    found: list[str] = []
    try:
        async for each in client.list_workflows(_ENDED):
            found.append(each.id)
            if len(found) == number:
                break
    except RPCError as error:
        raise translated(error, "") from error
    return found


_ENDED = f"{AGENTS_TOO} AND ExecutionStatus != 'Running' AND {OF_NO_PLAN}"

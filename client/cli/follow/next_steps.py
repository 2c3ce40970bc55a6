"""What a person can do next while a plan waits and the board asks nothing: events, what was put off, a missing worker.

Asked of the plan only when it waits and something has changed, and of the server every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from rich.console import Console
from rich.text import Text
from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client.feature import views_of_features
from plansurvive.client.rpc import describe
from plansurvive.client.verbs import runs
from plansurvive.client.verbs.runs import BriefView
from plansurvive.plans.errors import PlanError
from plansurvive.plans.run import PlanStatus
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import listed_steps
from plansurvive.plans.views.next_actions import NextAction, next_actions
from plansurvive.plans.views.summary import Summary
from plansurvive.runtime.task_queues import listeners

LOOK_SECONDS = 2.0
INDENT = " " * 6
SHOWN = 3
"""Actions listed: what is most likely wanted comes first."""


class NextSteps:
    """What can be done next about one plan."""

    def __init__(self, client: Client, plan: str) -> None:
        self._client, self._plan = client, plan
        self._found: list[NextAction] = []
        self._about: tuple[int, bool] | None = None
        self._awaited: list[str] = []

    async def keep(self, current: Callable[[], BriefView | None]) -> None:
        """Keep them up to date until cancelled."""
        while True:
            view = current()
            if view is not None:
                with suppress(PlanError, RPCError):  # the server is away, which the board says
                    await self._look(view)
            await asyncio.sleep(LOOK_SECONDS)

    def rows(self, view: BriefView, width: int, shown: int = SHOWN) -> list[Text]:
        """The rows to draw, none wider than `width`; none once something else is awaited than they are about."""
        if awaited(view) != self._awaited:
            return []
        texts = [f"next  {action.command}   {action.sentence}" for action in self._found[:shown]]
        return [Text(row, style="dim", no_wrap=True) for row in folded(texts, width, INDENT)]

    def held_up(self, view: BriefView, width: int) -> list[Text]:
        """What lets decisions have an effect, if they have none now: without a worker, or while it is paused."""
        is_unserved = self._about is not None and not self._about[1]
        return self.rows(view, width, 1) if is_unserved or view.status is PlanStatus.PAUSED else []

    async def _look(self, view: BriefView) -> None:
        queue = (await describe(self._client, self._plan)).task_queue
        is_served = bool(await listeners(self._client, queue))
        if self._about == (view.seq, is_served):
            return
        self._found = []
        if not is_served:
            self._found = next_actions(Summary(plan_id=self._plan, status=view.status), unserved=queue)
        elif awaited(view):
            self._found = next_actions(await runs.summary(self._client, self._plan), views=views_of_features())
        self._about, self._awaited = (view.seq, is_served), awaited(view)


def awaited(view: BriefView) -> list[str]:
    """What the plan waits for besides its own steps: a status that holds it, and the steps that ask or wait."""
    steps = [*listed_steps(view.steps)]
    asking = {step.id for step in steps if step.agent_asks or step.awaiting or (step.child and step.child.pending)}
    held = [view.status.value] if view.status in (PlanStatus.PAUSED, PlanStatus.REVIEW) else []
    return held + sorted(asking | {item.step_id for item in view.pending})


def folded(texts: Iterable[str], width: int, indent: str = "") -> list[str]:
    """Sentences as safe rows of at most `width` columns, broken at spaces; what continues one is indented."""
    rows = []
    for text in texts:
        whole = Text(line(text)).wrap(Console(width=width), max(20, width - len(indent)))
        rows += [(indent if number else "") + row.plain.rstrip() for number, row in enumerate(whole)]
    return rows

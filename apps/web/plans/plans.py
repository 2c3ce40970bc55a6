"""The list of plans, with filters, and the number of waiting decisions for the navigation. Needs no worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from temporalio.client import Client

from plansurvive.apps.web.common.rendering import page
from plansurvive.apps.web.common.service import own_decisions, service_of
from plansurvive.client.access import person_of
from plansurvive.client.children.naming import parts
from plansurvive.client.listing import Listed, list_plans, with_undos
from plansurvive.client.missing import in_namespace
from plansurvive.client.overview.standing import Standing
from plansurvive.plans.flow.closing_state import PHASES
from plansurvive.plans.flow.ids import pattern_of
from plansurvive.plans.model.identities import identity
from plansurvive.plans.run import PlanStatus

ON_A_PAGE = 50
MAX_LOOKED_AT = 5_000
"""Plans that a search looks through: their titles are not indexed."""
MAX_QUERY = 200


@dataclass(frozen=True)
class Filter:
    """Which plans are shown."""

    text: str = ""
    """In the title or id, in any case."""
    statuses: tuple[str, ...] = ()
    running: bool = False
    awaiting: bool = False
    mine: str = ""
    """The name of who started them; empty: whoever did."""
    number: int = 1
    """Of the page, from 1."""

    @classmethod
    def of(cls, request: Request) -> Filter:
        """The filter of a query string; what it does not understand is ignored."""
        query = request.query_params
        statuses = tuple(status for status in query.getlist("status") if status in list(PlanStatus))
        number = query.get("page", "1")
        return cls(
            query.get("q", "")[:MAX_QUERY].strip(),
            statuses,
            query.get("show") == "running",
            query.get("show") == "awaiting",
            person_of(request).name if query.get("show") == "mine" else "",
            max(1, int(number)) if number.isascii() and number.isdigit() and len(number) < 5 else 1,
        )

    def keeps(self, plan: Listed) -> bool:
        """Whether a plan is shown."""
        wanted = self.text.casefold()
        return (
            (not self.statuses or plan.status in self.statuses)
            and (not self.awaiting or plan.waiting is None or bool(plan.waiting) or plan.status == PlanStatus.REVIEW)
            and (not self.mine or identity(plan.by) == identity(self.mine))
            and (not wanted or wanted in plan.title.casefold() or wanted in plan.plan_id.casefold())
        )

    def url(self, number: int) -> str:
        """The address of another page of the same list."""
        named = {"running": self.running, "awaiting": self.awaiting, "mine": self.mine}
        show = next((name for name, is_wanted in named.items() if is_wanted), "")
        fields = [("q", self.text), ("show", show), *(("status", each) for each in self.statuses)]
        fields = [(name, value) for name, value in fields if value]
        return "/?" + urlencode([*fields, ("page", str(number))])


@dataclass(frozen=True)
class Found:
    """One page of the list."""

    plans: list[Listed]
    has_more: bool
    looked_at: int
    """If above MAX_LOOKED_AT, older plans were not looked at."""


@dataclass(frozen=True)
class Row:
    """One plan of the list."""

    plan: Listed
    standing: Standing | None
    """How it stands, of an open plan."""

    @property
    def total(self) -> int | None:
        """The number of its steps; None of an agent."""
        known = self.standing.total if self.standing else None
        return self.plan.steps if known is None else known

    @property
    def done(self) -> int | None:
        """How many are completed or skipped, as on its own page; None if that is not known."""
        if self.standing:
            return self.standing.done
        return self.plan.steps if self.plan.status is PlanStatus.COMPLETED else self.plan.done

    @property
    def phase(self) -> str:
        """That it rolls back, or runs its `finally`; empty if it does neither."""
        return PHASES.get(self.standing.phase, "") if self.standing else ""

    @property
    def to_decide(self) -> int:
        """How much there is to decide, as the inbox counts it: items of a loop together, each plan below by itself.

        The server's index names what is asked below the plan by the loop that it is in.
        """
        own = own_decisions(self.plan)
        asked = [parts(each.step_id) for each in (self.standing.asks if self.standing else ())]
        below = {(*around, pattern_of(step)) for *around, step in asked if around}
        return own + max(len(below), len(self.plan.waiting or ()) - own)

    @property
    def took(self) -> float:
        """Seconds since it started, or that it took."""
        return ((self.plan.ended_at or datetime.now(UTC)) - self.plan.started_at).total_seconds()


async def index(request: Request) -> Response:
    """The list of plans, newest first."""
    wanted = Filter.of(request)
    client = await service_of(request).client()
    found = await _found(client, wanted)
    known = await service_of(request).standings(found.plans)
    rows = [Row(each, known.get(each.plan_id)) for each in found.plans]
    return page(request, "plans.html", nav="plans", place=in_namespace(client), wanted=wanted, found=found,
                rows=rows, statuses=list(PlanStatus), most=MAX_LOOKED_AT)  # fmt: skip


async def inbox_count(request: Request) -> Response:
    """The number of waiting decisions, a fragment of the navigation."""
    return page(request, "_inbox_count.html", waiting=await service_of(request).waiting())


async def _found(client: Client, wanted: Filter) -> Found:
    kept: list[Listed] = []
    looked_at, before = 0, (wanted.number - 1) * ON_A_PAGE
    listed = list_plans(client, running=wanted.running or wanted.awaiting, limit=MAX_LOOKED_AT)
    async for plan in listed:
        looked_at += 1
        if wanted.keeps(plan):
            kept.append(plan)
            if len(kept) > before + ON_A_PAGE:
                break
    shown = kept[before : before + ON_A_PAGE]
    return Found(await with_undos(client, shown), len(kept) > before + ON_A_PAGE, looked_at)


routes = [Route("/", index), Route("/inbox/count", inbox_count)]

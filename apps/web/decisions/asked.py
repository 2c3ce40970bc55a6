"""What steps ask at this moment, as cards: with the present state of files, large values, and the forms to answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from plansurvive.apps.web.common.service import Service
from plansurvive.apps.web.decisions.cards import Shown, answer_form
from plansurvive.apps.web.decisions.inbox import outcome
from plansurvive.client import runs
from plansurvive.client.decide.here import diffs
from plansurvive.client.forms.schema_form import Field
from plansurvive.client.local_tools import tools_of
from plansurvive.client.rpc import ask_view
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.errors import PlanError
from plansurvive.plans.views.models import BriefView
from plansurvive.plans.views.queries import BRIEF


async def asked_now(service: Service, plan: str, step: str) -> Pending | None:
    """What a step asks now; None if it asks nothing."""
    client = await service.client()
    view = await ask_view(client, plan, BriefView, "plan", BRIEF)
    found = next((item for item in view.pending if item.step_id == step), None)
    if found is None and view.more_pending:  # views list only so many items of a loop
        call = await runs.call(client, plan, step)
        found = call if call is not None and call.kind != "early" else None
    if found is None:
        return None
    fields = {name: each for name, each in dict(found).items() if name in Pending.model_fields}
    return Pending.of(found.views, plan_id=plan, title=view.title, **fields)


async def news(service: Service, plan: str, step: str, asked: Pending | None) -> str:
    """Why a decision is not taken any more."""
    became = "" if asked else await outcome(await service.client(), plan, step)
    what = became or ("it asks something else now, which is shown here" if asked else "it asks nothing any more")
    return f"Nothing was sent: {what}."


async def cards_of(service: Service, items: Sequence[Pending], answer: Field | None = None) -> list[Shown]:
    """The cards of decisions. `answer`: what was typed as the answer of the question. Raises NotConnected."""
    connection, found = await service.connected(), dict[int, Shown]()
    by_plan: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        by_plan.setdefault(item.plan_id, []).append(number)
    for plan, numbers in by_plan.items():
        compared = await diffs(connection, service.settings, plan, [items[number] for number in numbers])
        for number, diff in zip(numbers, compared, strict=True):
            item = items[number]
            form = (answer or answer_form(item.args).field) if item.is_question else None
            found[number] = Shown(item, diff, form)
    return [found[number] for number in range(len(items))]


async def schema_of_args(service: Service, plan: str, tool: str) -> dict[str, Any] | None:
    """The schema of a tool's arguments; None if neither the plan's workers nor this machine know the tool."""
    with suppress(PlanError):
        spec = (await tools_of(await service.client(), plan, service.settings)).get(tool)
        return spec.args_schema if spec else None
    return None

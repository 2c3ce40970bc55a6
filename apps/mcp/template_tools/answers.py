"""What a plan with outputs answers once it has ended: the output `content` as it is, the others as data."""

from __future__ import annotations

import asyncio

from mcp.types import CallToolResult, ContentBlock, TextContent

from plansurvive.apps.mcp.common.replies import bounded, reply
from plansurvive.apps.mcp.common.where import where
from plansurvive.apps.mcp.template_tools.contents import as_text, contents
from plansurvive.apps.mcp.template_tools.files import Written
from plansurvive.apps.mcp.template_tools.offers import CONTENT
from plansurvive.apps.mcp.tools.views import shown
from plansurvive.client import runs
from plansurvive.client.end_records import run_of_ended
from plansurvive.client.requests.connected import Connected
from plansurvive.client.rpc import about
from plansurvive.client.verbs.summary import wait
from plansurvive.plans.errors import PlanError, ToolError
from plansurvive.plans.run import ENDED, Result
from plansurvive.plans.views.summary import Summary, why_failed
from plansurvive.runtime.connect import storage
from plansurvive.runtime.value_store import ValueStore


async def answered(here: Connected, plan: str) -> CallToolResult:
    """Where a plan stands, and its outputs if it has ended with some. Raises as `runs.show`."""
    found, text = await shown(here, plan)
    if found.status not in ENDED:
        return reply(found, text)
    summary, value = await wait(here.client, plan), await _value(here, plan)
    is_good = summary.is_completed and (value is None or value.ok)
    outputs = value.value if value and value.ok and isinstance(value.value, dict) else None
    told = {name: each for name, each in (outputs or {}).items() if name != CONTENT}
    answer = reply(found.model_copy(update={"outputs": told}) if outputs is not None else found, text)
    if not is_good:
        return answer.model_copy(update={"content": [_why(summary, value, here)], "is_error": True})
    if outputs is None:
        return answer
    return answer.model_copy(update={"content": await _blocks(here, plan, summary, outputs)})


async def _blocks(here: Connected, plan: str, summary: Summary, outputs: dict[str, object]) -> list[ContentBlock]:
    if CONTENT not in outputs:
        return [TextContent(text=f"Plan {summary.plan_id} completed. Outputs: {as_text(outputs)}")]
    view = await runs.show(here.client, plan)
    place = view.workspace if await here.is_local() else None
    files = Written(summary.plan_id, place, frozenset(summary.files_written), here.settings)
    return await asyncio.to_thread(contents, outputs[CONTENT], files.block)


async def _value(here: Connected, plan: str) -> Result | None:
    """The value of a plan that has ended, whole. Raises PlanError if it is stored where this machine cannot read it."""
    with about(plan):
        run = await run_of_ended(here.client, plan)
    if run is None or run.value is None or run.value.large is None:
        return run.value if run else None
    try:
        found = await ValueStore(storage(here.settings)).get(run.value.large)
    except ToolError as error:
        raise PlanError(f"the outputs of {plan} cannot be read here: {error.message}", "VALUE_UNAVAILABLE") from error
    return run.value.model_copy(update={"value": found})


def _why(summary: Summary, value: Result | None, here: Connected) -> TextContent:
    """Why a plan that has ended has no outputs."""
    rows = [f"Plan {summary.plan_id}: {summary.status.value}. {summary.stopped}".strip()]
    rows += [f"{each.step_id}: {each.code or 'failed'}: {why_failed(summary, each)}" for each in summary.failed[:10]]
    rows += [f"{each.step_id} was denied{f': {each.comment}' if each.comment else ''}" for each in summary.denied[:10]]
    rows += [f"{each.step_id} was not answered: {each.reason}" for each in summary.unanswered[:10]]
    rows += [f"{value.code}: {value.error}"] if value and not value.ok else []
    return TextContent(text=bounded("\n".join([*rows, where(here, summary.plan_id).text])))

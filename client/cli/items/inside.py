"""`plan show ID STEP`: one step, and what is inside it one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from plansurvive.client.children.naming import located
from plansurvive.client.cli.terminal.session import Connected
from plansurvive.client.ids import plan_id
from plansurvive.client.verbs import runs
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lengths import seconds
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.views.models import InnerStep, InsidePage, StepView, ToolCallView
from plansurvive.plans.views.models.card import commands
from plansurvive.plans.views.steps.row import decided, row, shortened, verdicts
from plansurvive.plans.views.steps.words import inside_line

SHOWN = 100
"""Steps that are listed unless all of them are asked for."""
SMALL = 20
"""Up to this many steps inside another one, those that are done are listed too."""
VALUE = 300
"""Characters of a value that are shown; `--json` has the rest."""


async def inside_text(here: Connected, plan: str, step: str, *, everything: bool) -> str:
    """The step as text, with what is inside it; `step` may name one of a child plan.

    Of many steps only those that are not done are listed: failed and waiting ones first.
    """
    plan, step = await located(here.client, plan, step)
    page = await runs.inside(here.client, plan, step, limit=1 if everything else SHOWN, unfinished=not everything)
    rows = [*_head(plan_id(plan), page.step, await _denied(here, page.step))] if page.step is not None else []
    if everything:
        steps = [each async for each in runs.all_inside(here.client, plan, step)]
    elif page.next is None and page.done + len(page.steps) <= SMALL:  # few: all of them, in the order of the plan
        page = await runs.inside(here.client, plan, step, limit=SMALL) if page.done else page
        steps = page.steps
    else:
        steps = sorted(page.steps, key=_urgency)
    if page.step is None and not steps and not page.done:
        return f"No step that fits '{line(step)}' has started; see: plan show {plan_id(plan)}"
    rows += [row for each in steps for row in _row(each)]
    if (page.next is not None or page.done) and not everything:
        more = ["more"] if page.next is not None else []
        more += [f"{page.done:,} completed or skipped"] if page.done else []
        rows.append(f"  … and {', and '.join(more)}: plan show {plan_id(plan)} {quoted(step)} --all")
    return "\n".join(rows)


def _urgency(step: InnerStep) -> int:
    """The order of what is not done: what awaits something, what failed, what runs, the rest."""
    if step.awaiting:
        return 0
    return {"failed": 1, "running": 2}.get(step.status, 3)


async def inside_json(here: Connected, plan: str, step: str, *, everything: bool) -> dict[str, Any]:
    """As `inside_text`, as JSON: `{step, steps, next?}`."""
    plan, step = await located(here.client, plan, step)
    page = await runs.inside(here.client, plan, step, limit=SHOWN)
    if everything:
        steps = [each async for each in runs.all_inside(here.client, plan, step)]
        page = InsidePage(step=page.step, steps=steps) if page.step else InsidePage(steps=steps)
    return page.to_json()


async def _denied(here: Connected, step: InnerStep) -> list[tuple[str, str]]:
    """The calls of the step's agents that were denied, and those that waited for such a one, each with a heading.

    They were never made, so only the agents know them.
    """
    found = list[tuple[str, str]]()
    for agent in _agents(step):
        with suppress(PlanError):  # its history was removed, or no worker answers for it now
            calls = (await runs.show(here.client, agent)).steps
            found += [("Denied", each) for each in denied_calls(agent, calls)]
            found += [("Not made", each) for each in unmade_calls(agent, calls)]
    return found


def denied_calls(agent: str, calls: Sequence[StepView]) -> Iterator[str]:
    """Those of an agent's calls that were denied: what was asked, and by whom and when it was denied."""
    for call in calls:
        if call.decision is not None and not call.decision.approved:
            yield f"{_named(agent, call)}: {decided(call.decision).text}"


def unmade_calls(agent: str, calls: Sequence[StepView]) -> Iterator[str]:
    """Those of an agent's calls that can never be made, as they wait for one that was denied or has failed, and why."""
    for call in calls:
        if call.permanently_blocked:
            yield f"{_named(agent, call)}: {call.reason}"


def _named(agent: str, call: StepView) -> str:
    return f"{agent} #{call.id.rpartition('_')[2]}: {call.tool} {_text(call.args)}"


def _agents(step: InnerStep) -> list[str]:
    """The agents that work or worked on the step."""
    last = [step.agent_asks.agent_id] if step.agent_asks else []
    return list(dict.fromkeys([*(call.agent for call in step.calls if call.agent), *last]))


def _head(plan: str, step: InnerStep, denied: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    stands = row(step)
    yield f"{line(step.id)}{f': {line(step.description)}' if step.description else ''} · {line(stands.how)}"
    found = [("Item", step.item), ("Inside", inside_line(step.inside) if step.inside else "")]
    if step.tool:
        found += [("Tool", step.tool), ("Args", _text(step.args))]
    result = step.result
    found += [("Error", "" if _is_explained(step) else stands.error), ("Reason", stands.reason)]
    if result is not None and result.ok:
        found.append(("Value", "assembled from the values of its steps" if result.cut else _text(result.value)))
    found += [("Depends on", ", ".join(step.needs))]
    found += [("Times", _times(step)), *(("Call" if call.agent else "Attempt", _attempt(call)) for call in step.calls)]
    found += denied
    found += [("Before", f"{step.more_calls} more calls and attempts")] if step.more_calls else []
    found += [(each.verb.capitalize(), each.text) for each in verdicts(step.decision, step.answer)]
    found += [("Files", ", ".join(step.files[:SHOWN])), ("Deleted", ", ".join(step.deleted[:SHOWN]))]
    found += [("Notes", step.notes), ("Recovered", step.mended), *(("Warning", each) for each in step.warnings)]
    found += [("Plan", f"plan show {step.child.plan_id}")] if step.child and step.child.plan_id else []
    asked = [(each.path, each.kind) for each in step.child.pending] if step.child else []
    found += [("Agent", f"plan show {agent}") for agent in _agents(step)]
    if step.agent_asks:
        asked += [(name, "approval") for name in step.agent_asks.step_ids]
    found += [("Asks", commands(plan, f"{step.id}/{path}", kind)) for path, kind in asked]
    yield from (f"  {name}: {line(text)}" for name, text in found if text)


def _times(step: InnerStep) -> str:
    times = [("started", step.started_at), ("ended", step.ended_at)]
    return ", ".join(f"{name} {_clock(time)}" for name, time in times if time)


def _attempt(call: ToolCallView) -> str:
    """One call or attempt: when, how long, what became of it; the arguments of an agent's, as the step's are others."""
    parts = [_clock(call.timestamp)] if call.timestamp else []
    parts += [f"attempt {call.attempt}"] if call.attempt else []
    parts += [seconds(call.duration / 1000)] if call.duration else []
    parts += [call.code] if call.code else []
    what = f"{call.agent} #{call.call}: {call.tool} {_text(call.args)}" if call.agent else call.tool
    if call.asked is not None:
        parts.append(f"changed by {call.changed_by or 'its approver'} from {_text(call.asked)}")
    parts += [f"in plan {call.plan_id}"] if call.plan_id else []
    return f"{what}, {', '.join(parts)}: {_text(call.result)}"


def _clock(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC")


def _row(step: InnerStep) -> Iterator[str]:
    stands, result = row(step), step.result
    inside = inside_line(step.inside) if step.inside is not None else ""
    what = "" if _is_explained(step) else stands.error or stands.reason
    if result is not None and result.ok and step.inside is None:
        what = _text(result.value)
    parts = [line(stands.how), inside, line(what)[:VALUE]]
    yield f"  [{stands.mark}] {line(step.id)} · " + " · ".join(part for part in parts if part)


def _is_explained(step: InnerStep) -> bool:
    """Whether the row of a step inside it has the error."""
    return step.inside is not None and step.inside.counts.get("failed", 0) > 0


def _text(value: Any) -> str:
    text, length = shortened(value, VALUE)
    return text if length <= VALUE else f"{text}… {length:,} characters"

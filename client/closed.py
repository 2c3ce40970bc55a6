"""Says of a message to a plan that has ended why it came too late: what was decided there, by whom and when, and which
command still does what was wanted. Read from the end record; where none can be read, only that the plan has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client.errors import PlanClosed
from plansurvive.client.ids import plan_id
from plansurvive.client.later_runs import later_runs
from plansurvive.client.rpc import ask_view
from plansurvive.plans.errors import PlanError
from plansurvive.plans.execution.resume import base_id, not_done
from plansurvive.plans.flow.ids import is_pattern
from plansurvive.plans.model.identities import AGENT_PREFIX
from plansurvive.plans.run import DONE, PlanStatus, Run
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import PlanView
from plansurvive.plans.views.steps.row import decided, verdicts

PATIENCE = 5.0
"""Seconds to wait for a worker that says what was decided."""


async def closed(client: Client, plan: str, message: Mapping[str, Any]) -> PlanClosed:
    """The error of a message to a plan that has ended."""
    from plansurvive.client.end_records import run_of_ended  # imports what reads a Run, which most commands do without

    name = plan_id(plan)
    with suppress(RPCError, PlanError):
        run = await run_of_ended(client, plan)
        if run is not None:
            later = [each async for each, of in later_runs(client, base_id(name)) if of == name]
            sets = any(each.get("op") == "set" for each in message.get("edits", ()))
            step_id = str(message.get("stepId") or "")
            return PlanClosed(why_closed(run, step_id, later[-1] if later else "", sets=sets))
        if message.get("stepId"):  # of agents there is no such record
            view = await ask_view(client, plan, PlanView, "plan", patience=PATIENCE)
            return PlanClosed(why_closed_of(view, name, str(message["stepId"])))
    return PlanClosed(f"plan '{name}' has ended and accepts no more messages; see: plan summary {name}")


def why_closed_of(view: PlanView, name: str, step_id: str) -> str:
    """As `why_closed`, of what only answers with its view, as an agent does."""
    kind = "agent" if name.startswith(AGENT_PREFIX) else "plan"
    said = f"{kind} '{line(name)}' has ended ({view.status}) and accepts no more messages"
    decision = next((each.decision for each in view.steps if each.id == step_id), None)
    if decision is not None:
        said += f"; step '{line(step_id)}' {decided(decision).was}"
    return f"{said}; see: plan show {line(name)}"


def why_closed(run: Run, step_id: str = "", later: str = "", *, sets: bool = False) -> str:
    """The sentence for a plan whose end record has this run. `step_id`: about which something was to be decided.

    `later`: the latest run that resumed it. `sets`: fields of it were to be set.
    """
    name = line(run.plan.id or "")
    who = f"{'agent' if run.literal else 'plan'} '{name}'"
    said = [f"{who} has ended ({run.status}) and accepts no more messages"]
    if step_id and not is_pattern(step_id):
        said.append(_about_step(run, step_id))
    return "; ".join([*said, _way(run, name, step_id, later, sets=sets)])


def _about_step(run: Run, step_id: str) -> str:
    """What became of the step: who decided, else how it ended."""
    state, title = run.steps.get(step_id), f"step '{line(step_id)}'"
    if state is None:
        return unknown_step(step_id, run).message
    for said in verdicts(run.decisions.get(step_id), state.answer):
        return f"{title} {said.was}"
    if state.status in DONE:
        return f"{title} is {state.status}, and asked no one"
    return f"nothing was decided about {title} before that"


def _way(run: Run, name: str, step_id: str, later: str, *, sets: bool) -> str:
    """What can still be done about it: a command that answers with something else than that there is nothing to do."""
    if later:
        return f"'{line(later)}' resumed it: plan show {line(later)}"
    if run.parent is not None:
        return f"it worked on step '{line(run.parent.step_id)}': plan show {line(run.parent.plan_id)}"
    left = set[str]() if run.status is PlanStatus.COMPLETED else not_done(run).names
    changed = " --set STEP.FIELD=VALUE" if sets and not run.literal else ""
    if left and not run.problems:
        asks = ", and asks there again if it must" if step_id in left else ""
        return f"`plan resume {name}{changed}` runs what is not done{asks}"
    if changed:
        return f"`plan rerun {name} --from STEP{changed}` runs steps again as changed"
    return f"see: plan summary {name}"

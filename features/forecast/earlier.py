"""What earlier runs of a plan tell about the next one: how long each step took, and what the LLM cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from temporalio.client import Client
from temporalio.service import RPCError

from plansurvive.client import end_records
from plansurvive.client.listing import list_plans
from plansurvive.client.prices import CostOf, cost, total
from plansurvive.plans.errors import PlanError
from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.run import PlanStatus, Run, Status

RUNS = 10
"""Earlier runs that are read, the newest first."""
LOOKED_AT = 1_000
"""Plans that are looked at for them."""
_ENDED = (PlanStatus.COMPLETED, PlanStatus.PARTIAL, PlanStatus.FAILED)


@dataclass
class Earlier:
    """Times and tokens of the runs of plans with the same title."""

    runs: int = 0
    by_step: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Seconds, by the step's id as the plan has it, without items."""
    by_tool: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    tokens: list[int] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    """Of the runs whose models all have a price."""

    def seconds(self, step_id: str, tool: str) -> float | None:
        """The median time of a step, else of its tool in these plans; None if neither is known."""
        found = self.by_step.get(template_of(step_id)) or self.by_tool.get(tool)
        return median(found) if found else None

    def add(self, run: Run, cost_of: CostOf) -> None:
        """Take the times of a run that has ended."""
        self.runs += 1
        for name, state in run.steps.items():
            step, result = run.step_of(name), state.result
            if step is None or result is None or state.status is not Status.COMPLETED:
                continue
            if step.is_block or step.for_each or step.repeat:
                continue
            if not result.taken_from:
                self.by_step[template_of(name)].append(result.duration / 1_000)
                self.by_tool[step.tool].append(result.duration / 1_000)
        if tokens := run.ledger.total.total_tokens:
            self.tokens.append(tokens)
            spent = total(cost(cost_of, model, usage) for model, usage in run.ledger.by_model.items())
            self.cost += [] if spent is None else [spent]


async def earlier_runs(client: Client, title: str, cost_of: CostOf) -> Earlier:
    """What the newest runs of plans with a title tell. Raises NotConnected."""
    found, looked_at = Earlier(), 0
    async for listed in list_plans(client, statuses=_ENDED):
        looked_at += 1
        if listed.title == title:
            try:
                run = await end_records.run_of_ended(client, listed.plan_id)
            except (RPCError, PlanError):  # its record cannot be read here
                run = None
            if run is not None:
                found.add(run, cost_of)
        if found.runs == RUNS or looked_at == LOOKED_AT:
            break
    return found

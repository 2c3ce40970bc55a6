"""Runs steps of the tool `coding_agent` as child workflows, as those of `agent` are run."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from plansurvive.features.agents.model.order import AgentOrder, asks_the_same
from plansurvive.features.agents.model.run import AgentRun
from plansurvive.features.agents.steps import ChildAgents
from plansurvive.features.coding_agents.model import TOOL, CodingSession, cost_in
from plansurvive.plans.model import Step
from plansurvive.plans.run import Options, Run


class CodingAgents(ChildAgents):
    """The coding agents of one Run's steps."""

    tools = (TOOL,)
    workflow_type = "CodingAgentWorkflow"

    def _agent(self, step: Step, args: dict[str, Any]) -> AgentRun:
        agent = super()._agent(step, {"objective": args["prompt"], "outputSchema": args.get("schema")})
        session = agent.run.part(CodingSession)
        if args.get("session") and not session.session:
            session.session = str(args["session"])
            session.paid = _paid(self._run, session.session)
        session.agent = str(args["agent"])
        session.timeout, session.approval = step.timeout, step.approval or self._run.plan.defaults.approval
        return agent

    def _earlier(self, step: Step, order: AgentOrder, name: str) -> AgentRun | None:
        """A new run that continues the session of the agent which worked on the step before the plan was resumed."""
        stored = self._run.agents.get(step.id)
        try:
            before = AgentRun.model_validate(stored) if stored is not None else None
            known = before.run.part(CodingSession) if before is not None else None
        except ValidationError:
            return None  # written by another version of this program: the step starts over
        if before is None or known is None or not known.loads or not asks_the_same(before.order, order):
            return None
        agent = AgentRun.of(order, name, Options())
        untold = [*known.given, *known.messages]
        kept = {"session": known.session, "sent": known.sent, "arrived": known.arrived, "paid": known.paid}
        agent.run.keep(CodingSession(loads=True, messages=untold, **kept))
        return agent


def _paid(run: Run, session: str) -> dict[str, float]:
    """What the session has cost in the step of the run that it continues: agents say what it costs in all."""
    values = (state.result.value for state in run.steps.values() if state.result is not None)
    costs = (
        cost_in(each.get("usage")) for each in values if isinstance(each, dict) and each.get("sessionId") == session
    )
    return max(costs, key=lambda each: sum(each.values()), default={})

"""What is particular about the replay of an agent: people's decisions, and where a run that was stopped ends."""

from __future__ import annotations

from typing import Any

from temporalio.bridge.proto.workflow_activation import SignalWorkflow, WorkflowActivationJob

from plansurvive.apps.evaluation.answers import Decisions, Key, decisions_of, is_about
from plansurvive.apps.evaluation.record import Done, Record
from plansurvive.apps.evaluation.stage import Stage, Stopped, not_recorded
from plansurvive.features.agents.model.run import AgentRun, agent_view

BY_ITSELF = frozenset(("completed", "stalled", "iterations", "tokens", "failed"))
"""Ends that follow from answers and results. Others came from people, a clock or a plan's budget."""
_ANY_EVENT = 1
"""The event that a signal comes from, as the workflow is told: the SDK warns about a signal without one."""
_KEPT = ("by", "comment", "args", "remember", "via")
"""Of a decision: what says who decided what. The rest binds it to the recorded call."""


class AgentPart:
    """Decides about calls as people did, and ends at a call that the record does not answer."""

    def __init__(self, record: Record, decisions: Decisions, *, is_first: bool, goes_on: bool) -> None:
        """`is_first`: the record's own answers are played, from which the decisions are learnt."""
        self._messages = decisions_of(record) if is_first else []
        self._decisions, self._is_first, self._goes_on = decisions, is_first, goes_on

    async def at_rest(self, stage: Stage) -> list[WorkflowActivationJob]:
        """The decision about a call that awaits approval; nothing if none does. Raises Stopped."""
        agent = AgentRun.model_validate(await stage.state())
        run = agent.run
        steps = {step.id: step for step in run.plan.steps}
        for name, state in run.steps.items():
            if state.awaiting != "approval" or name in run.decisions:
                continue
            key = Key.of(steps[name].tool, steps[name].args)
            message = self._recorded(key, name, state.digest) if self._is_first else self._decisions.take(key)
            if message is None and stage.answers.has(key):  # it was made without asking anybody
                message = {"approved": True}
            if message is None and self._is_first:
                stage.played.missing = key
                continue  # its time limit decided, or nobody before the run was stopped
            if message is None:
                self.missing(stage, key, is_counted=False)
                message = {"approved": True}  # it goes on: the call then gets its answer
            return [_decision(stage, name, message)]
        return []

    def missing(self, stage: Stage, key: Key, *, is_counted: bool = True) -> Done:
        """The replay ends, unless it is to go on: then the call fails, with words that say why."""
        stage.played.missing = stage.played.missing or key
        stage.played.missed += is_counted
        if not self._goes_on:
            stage.played.missed = max(stage.played.missed, 1)
            raise Stopped(f"a call of '{key.tool}' that is not in the record")
        return not_recorded(key, stage.now)

    def starts(self, stage: Stage, name: str) -> None:
        """Whatever it starts is answered."""

    async def closes(self, stage: Stage) -> None:
        """Note how the agent ended; of one that did not end, how far it came."""
        found = stage.summary.get("agent")
        if not isinstance(found, dict):
            found = agent_view(AgentRun.model_validate(await stage.state()))
        stage.played.closes(found)

    def _recorded(self, key: Key, name: str, digest: str) -> dict[str, Any] | None:
        for message in self._messages:
            if is_about(message, name, digest):
                self._messages.remove(message)
                self._decisions.note(key, message)
                return message
        return None


def _decision(stage: Stage, step_id: str, message: dict[str, Any]) -> WorkflowActivationJob:
    sent = {"stepId": step_id} | {name: message[name] for name in _KEPT if name in message}
    name = "approve" if message.get("approved") else "deny"
    if name == "deny":
        sent = {field: value for field, value in sent.items() if field not in ("args", "remember")}
    signal = SignalWorkflow(signal_name=name, input=stage.payloads(sent), originating_event_id=_ANY_EVENT)
    return WorkflowActivationJob(signal_workflow=signal)

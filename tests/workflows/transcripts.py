"""What an agent's model was told of its calls: as sent to the activity, and as it stood in the prompts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from temporalio.service import RPCError, RPCStatusCode

from plansurvive.features.agents.model.question import AgentQuestion, Outcome
from plansurvive.plans.llm.request import LlmRequest
from tests.kit.driving import Started
from tests.workflows.agents import Agents


async def told(runs: Sequence[Started]) -> dict[int, list[Outcome]]:
    """By number of a call, each result of it that was sent with an LLM request of these runs, in order.

    A run may never have begun: its plan was interrupted before.
    """
    found: dict[int, list[Outcome]] = {}
    for run in runs:
        try:
            scheduled = await run.scheduled()
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            continue
        requests = [each for each in scheduled.values() if each.activity_type.name == "ask_llm"]
        for each in sorted(requests, key=lambda each: int(each.activity_id.partition("-")[2])):
            (sent,) = await run.client.data_converter.decode(each.input.payloads)
            for outcome in LlmRequest.model_validate(sent).part(AgentQuestion).outcomes:
                if outcome.call is not None:
                    found.setdefault(outcome.call, []).append(outcome)
    return found


def agent_of(plan: Started) -> Started:
    """The agent of the plan's step `agent`."""
    return Started(plan.client, f"agent-{plan.id.removeprefix('plan-')}-agent")


def prompts(agents: Agents) -> list[str]:
    """By LLM request, everything that the model was told: all messages but its own."""
    requests = [seen.body["messages"] for seen in agents.llm.play.seen]
    return ["\n".join(str(each["content"]) for each in told if each["role"] != "assistant") for told in requests]


def occurrences(prompt: str, line: str) -> int:
    """How often a text stands in a prompt as the result of a call; not what begins alike."""
    return len(re.findall(rf"(?:SUCCESS|ERROR)\]: {re.escape(line)}(?![\w.-])", prompt))


def texts(args: Mapping[str, Any] | None) -> str:
    """What a call of `sign` or `work` is about."""
    return str((args or {}).get("text") or (args or {}).get("name") or "")

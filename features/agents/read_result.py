"""The orchestrator's own tool `read_result`: an agent's model reads on in the result of an earlier call."""

from __future__ import annotations

from plansurvive.features.agents.model.answers import ToolUse
from plansurvive.features.agents.model.question import Outcome, as_text
from plansurvive.features.agents.model.run import AgentRun, outcome_of, short_args
from plansurvive.plans.execution.tool_history import last_output
from plansurvive.plans.llm.prompt_parts import READ_RESULT


def read_on(agent: AgentRun, call: ToolUse) -> Outcome:
    """The whole value of a call, from an offset on; of one without a value, all that its commands wrote."""
    number, offset = int(call.args.get("call") or 0), int(call.args.get("offset") or 0)
    args = short_args(call.args)
    step_id = f"call_{number}"
    if step_id not in agent.run.steps:  # each has ended or cannot begin: the model answers after all calls of an answer
        return Outcome(
            tool=READ_RESULT, ok=False, state="failed", args=args, text=f"there is no result of call {number}"
        )
    whole, state = outcome_of(agent, step_id), agent.run.steps[step_id]
    if state.result is not None and state.result.ok and state.result.large is None:
        whole = whole.model_copy(update={"text": as_text(state.result.value), "length": None})
    own = {"tool": READ_RESULT, "offset": offset, "call": None, "args": args, "asked": None, "by": ""}
    return whole.model_copy(update={**own, "logs": last_output(state)})

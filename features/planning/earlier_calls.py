"""The results of a run's tool calls, for prompts about it."""

from __future__ import annotations

import json
from collections import deque
from heapq import nlargest

from plansurvive.plans.llm.prompt_parts import ToolOutcome
from plansurvive.plans.llm.shortened import args_line
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Run

HISTORY = 30
"""Maximum number of results in a prompt."""


def history(run: Run, step_id: str | None = None) -> list[ToolOutcome]:
    """Results of earlier tool calls, oldest first; without those of other items of the loops around the step."""
    outline, states = run.outline, run.steps
    around = {step_id, *(node.id for node in outline.ancestors(step_id))} if step_id is not None else set[str | None]()
    to_visit, ended = deque(step.id for step in run.plan.steps), list[str]()
    while to_visit:
        node = outline.nodes[to_visit.popleft()]
        if states[node.id].calls and states[node.id].result:
            ended.append(node.id)
        in_loop = node.kind == "each" and node.id in around
        to_visit.extend(name for name in node.children if not in_loop or name in around)
    last = nlargest(HISTORY, ended, key=lambda name: states[name].changes[-1].seq)
    return [_outcome(run, outline.step(name), states[name].result) for name in reversed(last)]


def _outcome(run: Run, step: Step, result: Result | None) -> ToolOutcome:
    sent = run.steps[step.id].sent
    args = args_line(run.args_of(step) if sent is None else sent)
    if result is None or not result.ok:
        return ToolOutcome(tool=step.tool, args=args, ok=False, text=(result.error if result else "") or "")
    if result.large:
        return ToolOutcome(tool=step.tool, args=args, text=result.large.preview, length=result.large.bytes)
    text = result.value if isinstance(result.value, str) else json.dumps(result.value, ensure_ascii=False)
    return ToolOutcome(tool=step.tool, args=args, text=text)

"""The tools that a plan may call on the workers of each queue: those of its steps, of their undos, of its `finally`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from plans.model import Plan, Step


def named_tools(plan: Plan, queue: str | None) -> list[str]:
    """Names of the tools that steps call on the workers of a queue; None: those of the plan's own."""
    calls = _calls(chain(plan.steps, plan.finally_ or ()), plan.queue)
    return list(dict.fromkeys(tool for tool, bound in calls if bound == queue))


def named_queues(plan: Plan) -> list[str]:
    """The task queues that steps are bound to, other than the plan's own."""
    calls = _calls(chain(plan.steps, plan.finally_ or ()), None)
    return list(dict.fromkeys(bound for _, bound in calls if bound))


def _calls(steps: Iterable[Step], queue: str | None) -> Iterator[tuple[str, str | None]]:
    """Each tool with the queue whose workers are called; `queue`: that of steps without one."""
    for step in steps:
        own = step.queue or queue
        if step.tool:
            yield step.tool, own
        if step.undo is not None and step.undo.tool is not None:
            yield step.undo.tool, own
        inner = chain(step.steps or (), step.finally_ or (), step.undo.steps or () if step.undo else ())
        cases = [each.steps for each in step.switch or ()] + [each.steps for each in step.catch or ()]
        yield from _calls(chain(inner, *cases), own)

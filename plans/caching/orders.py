"""Which calls may take the result of an earlier run: what a plan, a step, a tool and the start of the run say about it.

A step says it for itself, the plan for the steps that say nothing, a tool for those of plans that say nothing. Whoever
starts a run may say it for the plan (`plan run --since`), but not for a step that says `cache: false`.
"""

from __future__ import annotations

import re

from plans.model import Step, ToolSpec
from plans.model.caching import Cache, CacheOrder
from plans.run import Run

NETWORK = "network"
"""The argument with which a call asks for the network."""


def order_of(run: Run, step: Step, spec: ToolSpec) -> CacheOrder | None:
    """What is asked of the worker that makes the step's call; None: to call the tool, and keep nothing."""
    if not asked(run, step, spec) or refusal(run, step, spec):
        return None
    rule = rule_of(step)
    return CacheOrder(
        title=run.plan.title,
        reads=rule.reads,
        outside=rule.outside,
        since=run.options.since,
        fresh=run.options.cache == "fresh",
    )


def rule_of(step: Step) -> Cache:
    """The step's rule; without one, the tool's own."""
    return step.cache if isinstance(step.cache, Cache) else Cache()


def asked(run: Run, step: Step, spec: ToolSpec) -> bool:
    """Whether the step's result may be taken or kept, as far as anybody asks for it."""
    if step.cache is not None:
        return step.cache is not False
    if run.options.cache == "on" or run.options.since:
        return True
    return spec.cache if run.plan.cache is None else run.plan.cache


def refusal(run: Run, step: Step, spec: ToolSpec) -> str:
    """Why the step's tool is always called, although it is asked otherwise; empty if it need not be."""
    if run.literal:
        return "an agent makes the call"
    if "#" in re.sub(r"\[[^\]]*\]", "", step.id):  # a key may have the character as well
        return "it is a round of a repetition, which is there to call the tool again"
    if run.steps[step.id].closes:
        return "it undoes or closes the plan"
    return refusal_of(step, spec)


def refusal_of(step: Step, spec: ToolSpec) -> str:
    """The same, as far as the plan alone says it."""
    rule = rule_of(step)
    repeatable = spec.repeatable if step.repeatable is None else step.repeatable
    if step.repeat is not None:
        return "it is repeated, to call the tool again"
    if spec.durable:
        return f"{spec.name} is run by the workflow itself"
    if rule.reads is None and spec.reads == "unknown":
        return f"{spec.name} does not report which files it reads; list them in the step's cache.reads"
    if rule.outside:
        return ""
    if spec.outside or step.args.get(NETWORK) not in (None, False):
        return f"{spec.name} may have effects outside the workspace; say cache.outside if it need not have them again"
    return "" if repeatable else "it is declared not repeatable: it has an effect that matters each time"

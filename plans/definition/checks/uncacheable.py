"""Why a step's tool is called in every run, as far as its plan and the tool's description say it."""

from __future__ import annotations

from plansurvive.plans.model import Step, ToolSpec
from plansurvive.plans.model.caching import Cache

NETWORK = "network"
"""The argument with which a call asks for the network."""


def rule_of(step: Step) -> Cache:
    """The step's rule; without one, the tool's own."""
    return step.cache if isinstance(step.cache, Cache) else Cache()


def refusal_of(step: Step, spec: ToolSpec) -> str:
    """Why its tool is always called, although it is asked otherwise; empty if it need not be."""
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

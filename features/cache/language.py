"""Why a step's tool is called in every run, as far as its plan and the tool's description say it; problems of `cache`.

These are patterns that cannot be used, and steps that ask for earlier results and can never take one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.plans.definition.language import Language
from plansurvive.plans.files.owned import pattern_problem
from plansurvive.plans.model import Problem, Step, ToolSpec
from plansurvive.plans.model.caching import Cache

CODE, NEVER = "BAD_CACHE", "CACHE_NEVER"

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


def problems(step: Step, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
    """The problems of one step; nothing is said of steps that only their plan asks for."""
    if step.cache is None:
        return
    for number, pattern in enumerate(rule_of(step).reads or []):
        if found := pattern_problem(pattern):
            field = f"cache.reads[{number}]"
            yield Problem(code=CODE, step_id=step.id, field=field, message=f"`{pattern[:100]}` {found}")
    spec = tools.get(step.tool)
    if step.cache is not False and step.is_block:
        text = "a block takes no results of earlier runs; say it of the steps inside"
        yield Problem(code=NEVER, step_id=step.id, field="cache", message=text, severity="warning")
    elif step.cache is not False and spec is not None and (why := refusal_of(step, spec)):
        text = f"its tool will be called in every run: {why}"
        yield Problem(code=NEVER, step_id=step.id, field="cache", message=text, severity="warning")


LANGUAGE = Language(checks=[problems])

"""Problems of `cache`: patterns that cannot be used, and steps that ask for earlier results and can never take one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.plans.definition.checks.uncacheable import refusal_of, rule_of
from plansurvive.plans.files.owned import pattern_problem
from plansurvive.plans.model import Problem, Step, ToolSpec

CODE, NEVER = "BAD_CACHE", "CACHE_NEVER"


def cache_problems(step: Step, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:
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

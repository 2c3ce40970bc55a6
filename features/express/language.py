"""Where `express` may be asked for: of a plan, a block or a loop. A step alone is one activity in any case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.plans.definition.language import Language
from plansurvive.plans.model import Problem, Step, ToolSpec

CODE = "BAD_EXPRESS"
_TEXT = (
    "a step that calls one tool is one activity; set `express` on the plan, or on the block or loop that the step is"
    " in. `express: false` keeps a step in an activity of its own"
)


def problems(step: Step, tools: Mapping[str, ToolSpec]) -> Iterator[Problem]:  # noqa: ARG001
    """The problem of a step that asks for it alone."""
    is_one_call = not step.is_block and step.for_each is None and step.repeat is None
    if step.express not in (None, False) and is_one_call:
        yield Problem(code=CODE, step_id=step.id, field="express", message=_TEXT)


LANGUAGE = Language(checks=[problems])

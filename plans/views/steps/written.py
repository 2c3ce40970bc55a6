"""A step as it is written, for those who review a plan before it runs: its constructs, and the steps inside, whole."""

from __future__ import annotations

from collections.abc import Iterator

from plansurvive.plans.definition.scopes import Body, bodies, path_in
from plansurvive.plans.model import Step
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import unusual_in
from plansurvive.plans.views.steps.call_text import args_rows, value_rows

STEP = "     "
"""What indents the rows of a step."""


def written_rows(step: Step, path: str = "", indent: str = STEP) -> Iterator[str]:
    """The rows below a step's heading: its call with all arguments, conditions, and the same of the steps inside."""
    path = path or step.id
    yield from (f"{indent}{row}" for row in _construct_rows(step))
    if step.tool:
        yield f"{indent}Tool: {line(step.tool)}"
        yield f"{indent}Args:"
        yield from (f"{indent}  {row}" for row in args_rows(step.args))
        yield from (f"{indent}! {warning}" for warning in unusual_in(step.args.items()))
    if step.undo is not None and step.undo.tool is not None:
        yield f"{indent}Undo: {line(step.undo.tool)}"
        yield from (f"{indent}  {row}" for row in args_rows(step.undo.args))
    for body in bodies(step):
        yield f"{indent}{heading(step, body)}:"
        yield from inner_rows(body, path, f"{indent}  ")


def inner_rows(body: Body, owner: str, indent: str) -> Iterator[str]:
    """The steps of a body, each with its heading."""
    for inner in body.steps:
        path = f"{path_in(body, owner)}{inner.id}"
        yield f"{indent}- {line(inner.description or inner.id)}  [{line(path)}]"
        yield from written_rows(inner, path, f"{indent}  ")
        if inner.depends_on:
            yield f"{indent}  After: {', '.join(map(line, inner.depends_on))}"
        if inner.requires_approval:
            yield f"{indent}  Requires approval ⚠"


def _construct_rows(step: Step) -> Iterator[str]:
    """What decides whether and how often the step runs, as `name: value`."""
    if step.when is not None:
        yield from value_rows("when", step.when)
    for name, rule in (("forEach", step.for_each), ("repeat", step.repeat)):
        if rule is not None:
            yield from value_rows(name, rule.model_dump(mode="json", by_alias=True, exclude_defaults=True))


def heading(step: Step, body: Body) -> str:
    """What the steps of a body are for."""
    kind, _, rest = body.field.partition(".")
    number = int(rest.partition(".")[0]) if rest.partition(".")[0].isdigit() else 0
    if kind == "switch" and step.switch is not None:
        when = step.switch[number].when
        return f"If {line(when)}" if when is not None else "Else"
    if kind == "catch" and step.catch is not None:
        return f"On {', '.join(map(line, step.catch[number].codes)) or 'any failure'}"
    return {"steps": "Steps", "finally": "Finally", "undo": "Undo"}[kind]

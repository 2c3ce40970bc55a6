"""The rows of the review screen: the plan's steps, and below a block or loop the steps inside it that need a look.

Steps inside others are decided about here, not edited: an edit of the step itself changes all items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plansurvive.plans.flow.ids import template_of
from plansurvive.plans.run import Status
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.views.models import BriefStep, PlanView, StepView
from plansurvive.plans.views.models.card import Card, commands
from plansurvive.plans.views.steps.child import in_words
from plansurvive.plans.views.steps.words import inside_line

UNTOUCHED = ("pending", "blocked", "ready")
"""Statuses of steps that have not started."""
WAYS = 3
"""Decisions of a child plan or an agent whose commands are shown."""
ROWS = 30
"""Steps inside one step that have a row."""


def shown_steps(view: PlanView) -> list[StepView]:
    """The plan's steps, each followed by the steps inside it that await something or failed."""
    waiting = {item.step_id: item for item in view.pending}
    return [each for step in view.steps for each in (step, *_inner(step, waiting))]


def is_inside(step: StepView) -> bool:
    """Whether the row is of a step inside a block or loop."""
    return template_of(step.id) != step.id or "." in step.id


def why_not_edited(step: StepView, plan: str) -> str:
    """Why a step cannot be edited; empty if it can, according to this view. The plan itself decides."""
    if is_inside(step):
        one = quoted(f"{step.id}.args.NAME=VALUE")
        return f"Step '{line(step.id)}' is inside a block or loop. This one alone: plan edit {plan} --set {one}"
    if step.status in UNTOUCHED or step.status == Status.SKIPPED:
        return ""
    return f"Step '{step.id}' is {step.status}: only steps that have not started can be edited."


def inside_text(step: StepView) -> str:
    """What is inside a step, in one line; empty if nothing is, or it has not begun."""
    return "" if step.inside is None else inside_line(step.inside)


def below_text(step: StepView) -> str:
    """How the child plan of a step stands, or that its agent asks; empty if it has neither."""
    if step.child is not None:
        return in_words(step.child.status, step.child.counts, len(step.child.pending) + step.child.more)
    number = len(step.agent_asks.step_ids) if step.agent_asks else 0
    return f"{number} awaiting a decision" if number else ""


def below_id(step: StepView) -> str:
    """The child plan of a step; empty if it has none."""
    return line(step.child.plan_id) if step.child is not None else ""


def ways_below(plan: str, step: StepView) -> list[str]:
    """The commands that decide what a step's child plan or agent asks; of many the first, and where the others are."""
    asked = [(each.path, each.kind) for each in step.child.pending] if step.child is not None else []
    asked += [(name, "approval") for name in step.agent_asks.step_ids] if step.agent_asks else []
    more = max(0, len(asked) - WAYS) + (step.child.more if step.child is not None else 0)
    found = [commands(plan, f"{step.id}/{path}", kind) for path, kind in asked[:WAYS]]
    return [*found, *([f"{more} more: plan pending {line(plan)}"] if more else [])]


def _inner(step: StepView, waiting: Mapping[str, Card]) -> Iterator[StepView]:
    if step.inside is None:
        return
    troubled = [each for each in step.instances if each.awaiting or (each.status is Status.FAILED and not each.inside)]
    listed = {each.id for each in troubled}
    for each in troubled[:ROWS]:
        yield _row_of(each, waiting.get(each.id))
    start = (f"{step.id}[", f"{step.id}.", f"{step.id}#")
    more = [item for name, item in waiting.items() if name not in listed and name.startswith(start)]
    for item in more[: max(0, ROWS - len(troubled))]:
        found = BriefStep(id=item.step_id, tool=item.tool, status=Status.READY, awaiting="approval", item=item.item)
        yield _row_of(found, item)


def _row_of(step: BriefStep, item: Card | None) -> StepView:
    """A step inside another one as a row. Its id is not one that an author may write, so it is not validated."""
    return StepView.model_construct(
        id=step.id, tool=step.tool, description=step.item or step.description, status=step.status,
        args=item.args if item is not None else step.args or {}, awaiting=step.awaiting, result=step.result,
        permanently_blocked=step.permanently_blocked, started_at=step.started_at, ended_at=step.ended_at,
    )  # fmt: skip

"""The steps of a plan as a tree of nodes: what waits for what beside it, and what is inside what.

One tree for a plan that runs (PlanView) and for one that is only written (Plan, drafts included). A block is one node
to what is beside it, as it is in references. `catch` and `finally` stand beside the step they belong to; an `undo`
appears once the plan rolls back. Every text is safe to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plansurvive.features.agents.model.as_plan import TOOL as AGENT
from plansurvive.features.coding_agents.model import TOOL as CODING_AGENT
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import CATCH, FINALLY, UNDO, walk_step
from plansurvive.plans.flow.ids import around, inner_id, lineage, template_of
from plansurvive.plans.flow.outline import kind_of
from plansurvive.plans.model import Plan, Step
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.graphs.plan_nodes import written_text
from plansurvive.plans.views.models import BriefStep, ChildView, InsideView, PlanView, StepView
from plansurvive.plans.views.models.plan import TaskView
from plansurvive.plans.views.steps.child import in_words
from plansurvive.plans.views.steps.row import status_word
from plansurvive.plans.views.steps.words import inside_line, what

LABEL = 120
"""Characters of a label that are kept."""
CHILD_PLAN = "plan"
"""Tool of a step that runs another plan."""
AWAITING = "awaiting "
"""How a word of `counts` begins that counts what waits for a person, the LLM or an event."""
MORE = "more"
"""Kind of a node that stands for steps inside its parent that are not listed."""
_TASKS = {"done": "completed", "current": "running", "open": "pending"}


class Node(NamedTuple):
    """A step, or a group of steps that is not one."""

    id: str
    label: str
    kind: str = "call"
    """call, agent, plan; block, switch, each, repeat, case, catch, finally, undo; task; fold; more."""
    tool: str = ""
    status: str = ""
    """Empty for a step of a plan that has not started, and for a group that is not a step."""
    awaiting: str = ""
    needs: tuple[str, ...] = ()
    """Ids of nodes beside it."""
    inside: tuple[Node, ...] = ()
    counts: Mapping[str, int] | None = None
    """Of a loop or block that has begun: what is inside by status, whether listed or not."""
    told: str = ""
    """What is inside in one line; of a loop that has not begun, what it is over."""
    child: str = ""
    """Id of the plan that it runs, once that has started."""


def tree_of(view: PlanView) -> list[Node]:
    """The nodes of a plan that has been started, in reading order. Raises BadExpression."""
    found: list[Node] = []
    closing = {step.id: step for step in view.steps if step.closes}
    for step in view.steps:
        if step.closes == UNDO and not any(name in closing for name in around(step.id)):
            node = _begun(_started(step), closing)
            found.append(node._replace(kind=UNDO, needs=(step.id.removesuffix(f".{UNDO}"),)))
        elif not step.closes:
            found += [_started(step), *_beside_started(step)]
    if view.finally_ is not None:
        last = _finally(view.finally_, found)
        found.append(last._replace(inside=tuple(_begun(node, closing) for node in last.inside)))
    return found


def tree_of_plan(plan: Plan) -> list[Node]:
    """The nodes of a plan as written. Raises BadExpression."""
    found = _written_all(plan.steps, "")
    return found if plan.finally_ is None else [*found, _finally(plan.finally_, found)]


def instance_nodes(step: Step, listed: Sequence[BriefStep], inside_of: str) -> list[Node]:
    """The steps directly inside a step that has begun, each with those inside it, of those that are listed.

    `step`: the step of the plan around them; `inside_of`: the id of the one they are inside of. Raises BadExpression.
    """
    known = {each.id: each for each in listed}
    templates = dict(walk_step(step))
    children: dict[str, list[BriefStep]] = {}
    for each in listed:
        outer = (name for name in around(each.id) if name in known or name == inside_of)
        children.setdefault(next(outer, inside_of), []).append(each)
    return _instances(children, templates, inside_of)


def _begun(node: Node, closing: Mapping[str, StepView]) -> Node:
    """A node of what closes a plan, as its steps are; those inside it are steps of the view like itself."""
    inside = tuple(_begun(each, closing) for each in node.inside)
    step = closing.get(node.id)
    if step is None:
        return node._replace(inside=inside)
    now = _started(step)
    return now._replace(label=node.label, needs=node.needs, inside=now.inside if step.instances else inside)


def _started(step: StepView) -> Node:
    node = _head(step, step.id)._replace(
        status=status_word(step),
        awaiting=step.awaiting or "",
        needs=tuple(step.needs),
    )
    node = _with_child(_with_inside(node, step.inside), step.child, step.tasks)
    if step.inside is None and not step.instances:
        return node if node.inside else node._replace(inside=tuple(_written_inside(step, step.id)))
    inner = [each for each in step.instances if not _is_beside(each.id, step.id)]
    return _holding(node, instance_nodes(step, inner, step.id), step.more_instances)


def _beside_started(step: StepView) -> Iterator[Node]:
    """The `catch` and `finally` of a step: as they run, or else as they are written."""
    began = [each for each in step.instances if _is_beside(each.id, step.id)]
    running = {node.id: node for node in instance_nodes(step, began, step.id)}
    for node in _beside_written(step, step.id):
        kept = running.pop(node.id, None)
        yield node if kept is None else kept._replace(kind=node.kind, needs=node.needs, label=node.label)


def _is_beside(name: str, owner: str) -> bool:
    return any(inner_id(owner, part) in (name, *lineage(name)) for part in (CATCH, FINALLY))


def _instances(children: Mapping[str, Sequence[BriefStep]], templates: Mapping[str, Step], owner: str) -> list[Node]:
    """The nodes inside a step that has begun; what they wait for follows from the step as written."""
    found: list[Node] = []
    ids = {each.id for each in children.get(owner, ())}
    for each in children.get(owner, ()):
        template = templates.get(template_of(each.id))
        inner = _instances(children, templates, each.id)
        kind = "plan" if each.tool == CHILD_PLAN else each.kind
        label = _cut(_label(each, owner, template))
        node = Node(each.id, label, kind, line(each.tool), each.status.value, each.awaiting or "")
        node = node._replace(needs=_needs_of(each.id, owner, template, ids, found), inside=tuple(inner))
        node = _with_child(_with_inside(node, each.inside), each.child, each.tasks)
        found.append(_holding(node, inner, max(0, each.inside.began - len(inner)) if each.inside else 0))
    if all(node.id.startswith(f"{owner}[") for node in found):
        found.sort(key=_trouble)
    return found


def _label(each: BriefStep, owner: str, template: Step | None) -> str:
    """What names a step among those beside it: the item, the round, or, inside an item, what the step does."""
    if each.id.startswith(f"{owner}["):
        return each.item.rsplit(", item ", 1)[0] or each.id
    if each.id.startswith(f"{owner}#"):
        return f"round {each.id.removeprefix(owner + '#')}"
    return each.description or (template.description if template else "") or each.id.rpartition(".")[2]


def _trouble(node: Node) -> int:
    """Items that failed or await a person come first, then those that run."""
    words = {node.status, *(node.counts or {}), "awaiting" if node.awaiting else ""}
    if "failed" in words or any(word.startswith("awaiting") for word in words):
        return 0
    return 1 if node.status == "running" else 2


def _needs_of(name: str, owner: str, step: Step | None, ids: set[str], before: Sequence[Node]) -> tuple[str, ...]:
    if name.startswith(f"{owner}#"):  # rounds follow one another
        return (before[-1].id,) if before else ()
    if name in (inner_id(owner, CATCH), inner_id(owner, FINALLY)):
        return _ends(before)
    if step is None or not name.startswith(f"{owner}."):
        return ()
    return tuple(near for each in dependencies(step) if (near := inner_id(owner, each)) in ids)


def _holding(node: Node, inner: Sequence[Node], more: int) -> Node:
    """The node with what is inside it, and with a node that stands for those that are not listed."""
    rest = [Node(f"{node.id} {MORE}", number_of(more, "more step"), MORE)] if more else []
    return node._replace(inside=(*inner, *rest)) if inner or rest else node


def _written_all(steps: Sequence[Step], before: str) -> list[Node]:
    return [node for step in steps for node in _written(step, before)]


def _written(step: Step, before: str) -> Iterator[Node]:
    path = f"{before}{step.id}"
    needs = tuple(f"{before}{name}" for name in dependencies(step))
    yield _head(step, path)._replace(needs=needs, inside=tuple(_written_inside(step, path)))
    yield from _beside_written(step, path)


def _beside_written(step: Step, path: str) -> Iterator[Node]:
    for number, handler in enumerate(step.catch or [], 1):
        name = f"{path}.{CATCH}" + (f" {number}" if len(step.catch or []) > 1 else "")
        inside = tuple(_written_all(handler.steps, f"{path}.{CATCH}."))
        yield Node(
            name, _cut(f"if it fails: {', '.join(handler.codes) or 'any error'}"), CATCH, needs=(path,), inside=inside
        )
    if step.finally_ is not None:
        inside = tuple(_written_all(step.finally_, f"{path}.{FINALLY}."))
        yield Node(f"{path}.{FINALLY}", "However it ends", FINALLY, needs=(path,), inside=inside)


def _written_inside(step: Step, path: str) -> list[Node]:
    if step.steps is not None:
        return _written_all(step.steps, f"{path}.")
    found = []
    for number, case in enumerate(step.switch or [], 1):
        text = f"if {case.when}" if case.when else "otherwise"
        inside = tuple(_written_all(case.steps, f"{path}."))
        found.append(Node(f"{path} {number}", _cut(text), "case", inside=inside))
    return found


def _finally(steps: Sequence[Step], before: Sequence[Node]) -> Node:
    inside = tuple(_written_all(steps, f"{FINALLY}."))
    return Node(FINALLY, "However it ends", FINALLY, needs=_ends(before), inside=inside)


def _ends(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Those that nothing beside them waits for."""
    followed = {name for node in nodes for name in node.needs}
    return tuple(node.id for node in nodes if node.id not in followed)


def _head(step: Step, path: str) -> Node:
    kind = kind_of(step)
    if kind == "call" and step.tool in (AGENT, CODING_AGENT, CHILD_PLAN):
        kind = "plan" if step.tool == CHILD_PLAN else "agent"  # type: ignore[assignment]
    undo = f" · undo: {step.undo.tool or 'steps'}" if step.undo is not None else ""
    return Node(path, _cut(step.description or step.id), kind, line(what(step)) + line(undo), told=_cut(_often(step)))


def _often(step: Step) -> str:
    """How often a step runs and on which condition, as it is written: `for each of $files`."""
    if not (step.is_block or step.for_each or step.repeat):
        return ""
    return written_text(step.model_copy(update={"description": "-"})).removeprefix("-").removeprefix(", ")


def _with_inside(node: Node, inside: InsideView | None) -> Node:
    if inside is None:
        return node
    told = inside_line(inside)
    return node._replace(counts=dict(inside.counts), told=told)


def _with_child(node: Node, child: ChildView | None, tasks: Sequence[TaskView]) -> Node:
    if child is not None:
        asked = len(child.pending) + child.more
        told = in_words(child.status, child.counts, asked)
        return node._replace(told=told, counts=_counts_of(child, asked), child=child.plan_id)
    inner, before = list[Node](), ""
    for number, task in enumerate(tasks, 1):
        name = f"{node.id} task {number}"
        inner.append(
            Node(name, _cut(task.objective), "task", status=_TASKS[task.status], needs=(before,) if before else ())
        )
        before = name
    return node._replace(inside=tuple(inner)) if inner else node


def _counts_of(child: ChildView, asked: int) -> dict[str, int] | None:
    """The steps of a child plan by status; those that await a decision apart."""
    found = {word: count for word, count in child.counts.items() if word != "total" and count}
    if asked:
        left = found.pop("ready", 0) - asked
        found |= {f"{AWAITING}approval": asked} | ({"ready": left} if left > 0 else {})
    return found or None


def _cut(text: str) -> str:
    text = line(text)
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"

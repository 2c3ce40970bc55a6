"""The steps of a run as a tree: those of the plan, and inside them the steps, instances and rounds that have begun.

A node is a step with its own id, for example the instance `resize[cat.png]` of the step `resize`. Layers are taken off
one by one: a step with `forEach` has instances without it; one with `repeat` has rounds; what remains is a block, a
`switch` or the call of a tool. `catch`, `finally` and `undo` belong to the node that contains the rounds.

What closes a plan are roots beside its steps: `STEP.undo` for each step that is undone, and `finally`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from plansurvive.plans.definition.scopes import (
    CATCH,
    ERROR,
    FINALLY,
    INDEX,
    KEY,
    ROUND,
    STATUS,
    UNDO,
    VALUE,
    item_names,
)
from plansurvive.plans.expressions.conditions import roots_of
from plansurvive.plans.flow.batches.outcome import ITEMS
from plansurvive.plans.flow.batches.split import batch_key, bounds, is_split
from plansurvive.plans.flow.closing_state import Closing
from plansurvive.plans.flow.ids import inner_id, instance_id, round_id
from plansurvive.plans.flow.opened import Opened
from plansurvive.plans.model import ForEach, Plan, Step, Undo
from plansurvive.plans.model.opaque import PLAN

Kind = Literal["call", "block", "switch", "each", "repeat"]


class Node:
    """One step of the tree."""

    __slots__ = (
        "_step",
        "bindings",
        "children",
        "closing",
        "id",
        "kind",
        "names",
        "needs_siblings",
        "parent",
        "scope",
        "source",
    )

    def __init__(
        self, step: Step, parent: str | None = None, *, step_id: str = "",
        names: Mapping[str, str] | None = None, bindings: Mapping[str, Any] | None = None, needs_siblings: bool = False,
    ) -> None:  # fmt: skip
        self.id = step_id or step.id
        self._step = step if self.id == step.id else None
        self.source = step
        """The step as the plan has it, or as it was edited, before it got this id: nodes alike share it."""
        self.parent = parent
        self.names = names
        """Ids of the steps beside it, by the names they have there."""
        self.bindings = bindings
        """Values that references inside it may use, by name."""
        self.needs_siblings = needs_siblings
        """Whether it waits for steps beside it."""
        self.scope = parent
        """Where names are looked up that mean nothing in its own place."""
        self.closing = False
        """Whether it is part of a `finally` or an undo, which run when the plan has been stopped as well."""
        self.kind: Kind = kind_of(step)
        self.children: list[str] = []

    @property
    def step(self) -> Step:
        """The step under its own id. Made when it is used: of the thousands in a tree, few are."""
        if self._step is None:
            self._step = self.source.model_copy(update={"id": self.id})
        return self._step


class Found(NamedTuple):
    """What a name in a reference stands for: the value of a step, or a value itself."""

    step_id: str | None
    value: Any = None


def kind_of(step: Step) -> Kind:
    """The outermost layer of a step."""
    if step.for_each is not None:
        return "each"
    if step.repeat is not None:
        return "repeat"
    if step.switch is not None:
        return "switch"
    return "call" if step.steps is None else "block"


class Outline:
    """The tree of one run. `open` adds what has begun since; nothing is removed before it is built again."""

    def __init__(
        self, plan: Plan, opened: Mapping[str, Opened], overrides: Mapping[str, Step], closing: Closing | None = None
    ) -> None:
        self.plan = plan
        self.opened, self._overrides = opened, overrides
        self._prototypes: dict[str, Step] = {}
        self.nodes: dict[str, Node] = {}
        for step in plan.steps:
            self._add(Node(step, needs_siblings=True))
        for step_id in closing.undone if closing is not None else ():
            self.undo(step_id)
        if closing is not None and closing.phase == FINALLY:
            self.close(closing.ends)

    def __contains__(self, step_id: str) -> bool:
        return step_id in self.nodes

    def step(self, step_id: str) -> Step:
        """The step with that id. Raises KeyError."""
        return self.nodes[step_id].step

    def loop_of(self, step_id: str) -> Node | None:
        """The loop that a step is a batch of; None of all other steps."""
        node = self.nodes.get(step_id)
        parent = self.nodes[node.parent] if node is not None and node.parent is not None else None
        if parent is None or parent.kind != "each" or not is_split(parent.source.for_each):
            return None
        return parent

    def open(self, step_id: str) -> list[Node]:
        """Add the nodes of a container that has begun, or got further; returns the new ones."""
        node = self.nodes[step_id]
        new = [child for child in self._inside(node) if child.id not in self.nodes]
        for child in new:
            child.closing = child.closing or node.closing
            self.nodes[child.id] = child
            node.children.append(child.id)
        return new

    def undo(self, step_id: str) -> Node:
        """Add the node that undoes a step: `STEP.undo`, with the step's value and what the step itself could use."""
        undone = self.nodes[step_id].step
        # Without an `undo` of its own, a step with a child plan is undone by what that plan's steps say.
        rule = undone.undo or Undo(tool=PLAN)
        call: dict[str, Any] = {"steps": rule.steps}
        if rule.steps is None:
            call = {"tool": rule.tool or "", "args": rule.args, "requires_approval": rule.requires_approval}
        step = Step(id=UNDO, description=f"undo {step_id}", critical=False, on_failure="block", **call)
        own = step.model_copy(update={"id": inner_id(step_id, UNDO), "queue": undone.queue})
        if undone.undo is None:
            own = own.model_copy(update={"requires_approval": False})  # its steps ask, each for itself
        return self._root(Node(own, names={VALUE: step_id}), step_id)

    def close(self, status: str) -> Node:
        """Add the node of the plan's `finally`; `status`: what the plan ends with."""
        step = Step(id=FINALLY, steps=self.plan.finally_ or [], critical=False, on_failure="block")
        return self._root(Node(step, bindings={STATUS: status}), None)

    def _root(self, node: Node, scope: str | None) -> Node:
        node.scope, node.closing = scope, True
        self._add(node)
        return node

    def find(self, step_id: str, name: str) -> Found | None:
        """What a name means in a step's references; None if it has no meaning there."""
        at: str | None = step_id
        while at is not None and at in self.nodes:
            node = self.nodes[at]
            if node.bindings is not None and name in node.bindings:
                return Found(None, node.bindings[name])
            if node.names is not None and name in node.names:
                return Found(node.names[name])
            at = node.scope
        return Found(name) if name in self.nodes and self.nodes[name].parent is None else None

    def ancestors(self, step_id: str) -> Iterator[Node]:
        """The containers of a step, innermost first."""
        at = self.nodes[step_id].parent
        while at is not None:
            yield self.nodes[at]
            at = self.nodes[at].parent

    def inner_name(self, step_id: str) -> str:
        """The name of a step beside its siblings."""
        parent = self.nodes[step_id].parent
        return step_id if parent is None else step_id[len(parent) + 1 :]

    def _add(self, node: Node) -> None:
        self.nodes[node.id] = node
        if node.id in self.opened:
            for child in self._inside(node):
                child.closing = child.closing or node.closing
                node.children.append(child.id)
                self._add(child)

    def _inside(self, node: Node) -> Iterator[Node]:
        """All nodes directly inside a container, as far as they have begun."""
        opened, step = self.opened.get(node.id), node.source
        if opened is None:
            return
        match node.kind:
            case "each":
                yield from self._instances(node, opened)
            case "repeat":
                yield from self._rounds(node, opened)
            case "block":
                yield from self._steps(node.id, step.steps or [])
            case "switch":
                if opened.case is not None and step.switch is not None:
                    yield from self._steps(node.id, step.switch[opened.case].steps)
        yield from self._extra(node, opened)

    def _instances(self, node: Node, opened: Opened) -> Iterator[Node]:
        rule = node.source.for_each or ForEach(items=[])
        if is_split(rule):
            yield from self._batches(node, opened, rule)
            return
        proto = self._prototype(node.id, node.source, {"for_each": None, "when": when_of_item(node.source)})
        for index in range(len(node.children), opened.began):
            key = opened.key(index)
            item = opened.items[index] if opened.items is not None else None
            bindings = {rule.as_: item, INDEX: opened.first + index, KEY: key}
            yield self._own(proto, instance_id(node.id, key), node.id, bindings=bindings)

    def _batches(self, node: Node, opened: Opened, rule: ForEach) -> Iterator[Node]:
        """The batches of a loop: steps that run child plans, which `features.children.batches` makes."""
        items = opened.items or []
        proto = Step(id=ITEMS, tool=PLAN, queue=node.source.queue, critical=False, on_failure="block")
        for number in range(len(node.children), opened.began):
            first, end = bounds(rule, number, len(items))
            key, text = batch_key(first, end), f"{end - first} of {len(items)} items"
            step = proto.model_copy(update={"id": instance_id(node.id, key), "description": text})
            part = [items[first:end], [opened.key(index) for index in range(first, end)]]
            yield Node(step, node.id, bindings={"": part, KEY: key})

    def _rounds(self, node: Node, opened: Opened) -> Iterator[Node]:
        outer: dict[str, Any] = {"repeat": None, "catch": None, "finally_": None, "undo": None, "when": None}
        if node.source.is_block:
            outer["requires_approval"] = None  # asked for once, before the first round
        proto = self._prototype(node.id, node.source, outer)
        rounds = sum(1 for child in node.children if child.startswith(f"{node.id}#"))
        for number in range(rounds + 1, opened.began + 1):
            yield self._own(proto, round_id(node.id, number), node.id, bindings={ROUND: number})

    def _steps(self, owner: str, steps: list[Step]) -> Iterator[Node]:
        names = {step.id: inner_id(owner, step.id) for step in steps}
        for step in steps:
            yield self._own(step, names[step.id], owner, names=names, needs_siblings=True)

    def _extra(self, node: Node, opened: Opened) -> Iterator[Node]:
        """The blocks of `catch` and `finally`, which see the steps of the block they belong to."""
        step, ended = node.source, opened.body
        if ended is None:
            return  # the common case, for each item of a loop
        names = {self.inner_name(child): child for child in node.children}
        if opened.handler is not None and step.catch is not None:
            block = Step(id=CATCH, steps=step.catch[opened.handler].steps)
            error = {"code": ended.code or "", "message": ended.error or ""}
            yield self._own(block, inner_id(node.id, CATCH), node.id, names=names, bindings={ERROR: error})
        if opened.closing and step.finally_ is not None:
            block = Step(id=FINALLY, steps=step.finally_)
            status = {STATUS: "completed" if ended.ok else "cancelled" if opened.cancelled else "failed"}
            last = self._own(block, inner_id(node.id, FINALLY), node.id, names=names, bindings=status)
            last.closing = True
            yield last

    def _prototype(self, owner: str, step: Step, without: dict[str, Any]) -> Step:
        """What the instances or rounds of a step have in common. Their failures are judged by the step as a whole."""
        if owner not in self._prototypes:
            own = {"depends_on": [], "critical": False}
            if (step.on_failure or self.plan.defaults.on_failure) == "stop":
                own["on_failure"] = "block"
            self._prototypes[owner] = step.model_copy(update={**own, **without})
        return self._prototypes[owner]

    def _own(
        self, step: Step, step_id: str, parent: str, *, names: Mapping[str, str] | None = None,
        bindings: Mapping[str, Any] | None = None, needs_siblings: bool = False,
    ) -> Node:  # fmt: skip
        """The node of a step under its own id, as it was edited there."""
        source = self._overrides.get(step_id, step)
        return Node(source, parent, step_id=step_id, names=names, bindings=bindings, needs_siblings=needs_siblings)


class Drawn:
    """Holds the outline of a run, which is derived from it: it takes no part in comparing and copying runs."""

    def __init__(self) -> None:
        self.outline: Outline | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Drawn)

    def __hash__(self) -> int:
        return 0

    def __copy__(self) -> Drawn:
        return Drawn()

    def __deepcopy__(self, memo: object) -> Drawn:
        return Drawn()


def when_of_item(step: Step) -> str | None:
    """The condition of a step with `forEach`, if it is about the single item; None if it is about the whole step."""
    if step.when is None:
        return None
    return step.when if item_names(step).intersection(roots_of(step.when)) else None


def when_of_whole(step: Step) -> str | None:
    """The condition of a step, unless it is about single items."""
    return None if step.when is None or when_of_item(step) else step.when

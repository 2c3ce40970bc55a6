"""Forecasts which steps of a plan, and which undos, will wait for a person, and why: for `plan check` and schedules.

What is known before a run: what the plan says of approvals, what the tools ask by default, and which files are written
over. A file that is not there yet is there in the next run, so those steps are reported as well, for later runs. Of a
plan that rolls back, the undo of a step is reported as `STEP.undo`: while it asks, the rollback waits. An undo that is
approved with its step is said with that instead. What depends on values of a run is not known; no step is reported that
the plan, or its `owns`, waives.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from plansurvive.plans.definition.checks.races import ShellWrites, paths_used
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.language import PLAIN, Language
from plansurvive.plans.definition.scopes import UNDO, VALUE, Body, bodies, plan_bodies, walk
from plansurvive.plans.definition.taint import depends_on_content
from plansurvive.plans.expressions.references import INPUTS, find, is_literal
from plansurvive.plans.files.name_patterns import ProtectedNames, is_exposed
from plansurvive.plans.files.owned import is_owned
from plansurvive.plans.model import Plan, Step, ToolSpec, Undo, Value
from plansurvive.plans.model.opaque import scanned

MAX_VISITS = 200_000
"""Steps looked at in search of earlier users of a file; after that a file counts as not seen before."""
_APPROVALS = ("REQUIRED", "TOOL", "PROTECTED", "OVERWRITES")
"""Codes of steps about whose call a person decides."""
_WRITES = ("write_file", "edit_file", "delete_file", "create_directory")


class Asking(Value):
    """A step that will wait for a person."""

    step_id: str = Field(description="The step; inside a block after the block's id and a dot.")
    code: Literal["REQUIRED", "TOOL", "PROTECTED", "OVERWRITES", "AGENT", "QUESTION", "PLAN"]
    reason: str = Field(description="Why, and what to write so that it does not, in a sentence.")
    first_run: bool = Field(default=True, description="False: not the first run, but those after it.")


@dataclass(frozen=True)
class Ground:
    """What a plan is going to meet: the tools, the files, the rules of the worker."""

    tools: Mapping[str, ToolSpec]
    exists: Callable[[str], bool]
    """Whether a path below the workspace exists now."""
    written_by_shell: ShellWrites
    names: ProtectedNames = field(default_factory=ProtectedNames)
    strict: bool = False
    """Nothing is waived."""
    rule: str = "PLANS_APPROVALS=strict"
    """What waives nothing, if it is strict."""
    signed: bool = False
    """Decisions are signed: that about a step says nothing of its undo."""
    language: Language = PLAIN
    is_begun: bool = False
    """It is about a plan that was sent already: what an edit adds waives nothing."""


def will_ask(plan: Plan, ground: Ground, *, approve_all: bool = False) -> list[Asking]:
    """The steps that will ask, in reading order. `approve_all`: the plan is started with `--yes`."""
    nodes = list(_nodes(plan_bodies(plan), None, undoes=plan.rollback))
    uses = _Uses(nodes, ground.written_by_shell)
    waived = approve_all and not ground.strict
    asking: list[Asking] = []
    covering = set[_Node]()
    for node in nodes:
        code, reason, first = _why(plan, node, ground, uses, waived)
        if node.is_undo and node.parent in covering:
            continue
        if first and code in _APPROVALS and not ground.signed and is_told(node.step.undo, ground.tools):
            covering.add(node)
            reason += "; its undo is approved with it" if plan.rollback else ""
        if code:
            asking.append(Asking.model_validate(
                {"step_id": node.name, "code": code, "reason": reason, "first_run": first}
            ))  # fmt: skip
    return asking


def _why(plan: Plan, node: _Node, ground: Ground, uses: _Uses, waived: bool) -> tuple[str, str, bool]:
    """Code and reason, and whether the first run asks already; the code is empty if it asks for nothing."""
    step, spec, asks = node.step, ground.tools.get(node.step.tool), ground.language.tool(node.step.tool).asks
    if asks is not None and (asks.is_question or not waived):
        return asks.code, asks.reason, True
    if step.approval is not None and step.approval.names_people:
        return "REQUIRED", "the plan says in `approval` who must approve it", True
    if waived or spec is None or (step.requires_approval is False and not ground.strict):
        return "", "", True
    if step.requires_approval is True:
        return "REQUIRED", "the plan says `requiresApproval: true`", True
    if spec.asks_by_default(step.args, bool(spec.sends) and (ground.strict or _carries(node, spec))):
        way = "`requiresApproval: false` waives it"
        if ground.is_begun:
            way = "`requiresApproval: false` in an edit does not waive it"
        if ground.strict:
            way = f"{ground.rule} waives nothing"
        how = "with these arguments" if spec.approval_exempt else "by default"
        return "TOOL", f"{step.tool} needs approval {how}; {way}", True
    if step.tool in _WRITES:
        return _of_file(plan, node, ground, uses)
    return "", "", True


def _of_file(plan: Plan, node: _Node, ground: Ground, uses: _Uses) -> tuple[str, str, bool]:
    """Why a file tool asks: the name is protected, or there is a file that the run does not know."""
    step, path = node.step, node.step.args.get("path")
    if not isinstance(path, str):
        return "", "", True
    if find(path):
        if step.tool != "write_file" or (plan.owns and not ground.strict):
            return "", "", True
        text = "writes over a file, known only when it runs, if there is one; list what it may replace in `owns:`"
        return "OVERWRITES", text, False
    name = posixpath.normpath(path.removeprefix("$") if path.startswith("$$") else path)
    if found := ground.names.reason(name.split("/"), is_folder=step.tool == "create_directory"):
        return "PROTECTED", f"{name} ({found.title}) may {found.why}; `owns:` does not cover it", True
    is_new = ground.strict and step.queue is None and not ground.exists(name) and not uses.knows(node, name)
    at_top = not ground.exists(name.split("/")[0])
    if is_new and step.tool in ("write_file", "create_directory") and is_exposed(name.split("/"), at_top=at_top):
        text = "is a new name at the top of the workspace, or with a dot"
        return "PROTECTED", f"{name} {text}; {ground.rule} asks about those", True
    if step.tool != "write_file" or uses.knows(node, name) or (is_owned(plan.owns, name) and not ground.strict):
        return "", "", True
    way = "read it first" if ground.strict else "list it in `owns:`, or read it first"
    text = f"writes over {name}, which the plan neither made nor read; {way}"
    return "OVERWRITES", text, step.queue is None and ground.exists(name)


def _carries(node: _Node, spec: ToolSpec) -> bool:
    """Whether what the tool sends tells the value of a step; the same as `carries` of a run."""
    sent = {name: value for name, value in node.step.args.items() if name in spec.sends}
    if any(each.root != INPUTS and not is_literal(each, node.siblings) for each in find(sent)):
        return True
    return depends_on_content(node, lambda each: each.step, lambda each: [each.parent] if each.parent else [], _needed)


def _needed(node: _Node) -> Iterator[_Node]:
    """The steps that a step depends on, beside it or beside what it is in."""
    for name in dependencies(node.step):
        yield from (each.siblings[name] for each in node.above() if name in each.siblings)


@dataclass(frozen=True, eq=False)
class _Node:
    """A step, and where it stands."""

    name: str
    step: Step
    parent: _Node | None
    siblings: dict[str, _Node]
    is_undo: bool = False

    def before(self) -> Iterator[_Node]:
        """The steps that are done when this one starts, blocks as a whole."""
        seen: set[str] = set()
        waiting = list(_needs(self))
        while waiting:
            name = waiting.pop()
            if name in self.siblings and name not in seen:
                seen.add(name)
                yield self.siblings[name]
                waiting += _needs(self.siblings[name])
        if self.parent is not None:
            yield from self.parent.before()

    def above(self) -> Iterator[_Node]:
        """Itself and the blocks that it is in."""
        node: _Node | None = self
        while node is not None:
            yield node
            node = node.parent


def undo_step(step: Step, rule: Undo) -> Step:
    """The call that undoes a step, as a step that depends on it: what that made, its undo knows."""
    return Step(id=UNDO, tool=rule.tool or "", args=rule.args, requires_approval=rule.requires_approval,
                depends_on=[step.id], queue=step.queue)  # fmt: skip


def is_told(rule: Undo | None, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the approval of a step tells all of its undo: one call, without the step's value, that need not ask."""
    if rule is None or rule.tool is None or rule.requires_approval is True:
        return False
    if rule.tool not in tools or tools[rule.tool].durable:
        return False
    return all(each.root != VALUE for each in find(scanned(rule.tool, rule.args)))


def _needs(node: _Node) -> Iterable[str]:
    return [*node.step.depends_on, *(each.root for each in find(node.step.args))]


def _nodes(found: Iterable[Body], parent: _Node | None, *, undoes: bool) -> Iterator[_Node]:
    """The steps of bodies, and those inside them. `undoes`: and the calls that undo them, each after its step."""
    for body in found:
        siblings: dict[str, _Node] = {}
        for step in body.steps:
            name = ".".join(filter(None, (parent.name if parent else "", body.part, step.id)))
            siblings[step.id] = _Node(name, step, parent, siblings)
        for node in siblings.values():
            yield node
            yield from _nodes(bodies(node.step), node, undoes=undoes)
            rule = node.step.undo
            if undoes and rule is not None and rule.tool is not None:
                yield _Node(f"{node.name}.{UNDO}", undo_step(node.step, rule), node, {node.step.id: node}, is_undo=True)


class _Uses:
    """Which steps use which files."""

    def __init__(self, nodes: Iterable[_Node], written_by_shell: ShellWrites) -> None:
        self._users: dict[str, list[_Node]] = {}
        self._left = MAX_VISITS
        for node in nodes:
            for path, _ in paths_used(node.step, written_by_shell) if node.step.tool else ():
                self._users.setdefault(path, []).append(node)

    def knows(self, node: _Node, path: str) -> bool:
        """Whether an earlier step makes, reads or changes the file that a step writes."""
        users = [each for each in self._users.get(f"{node.step.queue or ''}\0{path}", ()) if each is not node]
        around = {above for user in users for above in user.above()}
        for earlier in node.before() if around else ():
            self._left -= 1
            if earlier in around or self._left <= 0:
                return self._left > 0
        return False


def waived(plan: Plan) -> list[str]:
    """Ids of the steps whose approval the plan itself waives: by `requiresApproval: false`, or when it times out."""
    by_default = plan.defaults.approval is not None and plan.defaults.approval.on_timeout == "approve"
    found = []
    for _, step in walk(plan):
        times_out = step.approval.on_timeout == "approve" if step.approval else by_default
        if step.requires_approval is False or times_out:
            found.append(step.id)
    return list(dict.fromkeys(found))

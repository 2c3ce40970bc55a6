"""The call that a step would make, with its digest: what a person decides about (DESIGN 2.9).

A call is the tool, the arguments with values filled in, the task queue, the workspace and the network access. Two calls
with the same digest do the same; a decision about one digest is no decision about another. A value that is stored
outside history counts by its content hash. Nothing here changes the run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from plansurvive.plans.child_state import loaded
from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.taint import depends_on_content
from plansurvive.plans.directory import DirectoryIdentity
from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import reaches, roots_of
from plansurvive.plans.expressions.evaluation import MAX_ARGS_CHARACTERS, Budget
from plansurvive.plans.expressions.references import (
    INPUTS,
    PLAIN,
    Filled,
    Location,
    fill,
    find,
    hold_no_text,
    in_text,
    is_literal,
)
from plansurvive.plans.flow.ids import lineage, template_of
from plansurvive.plans.flow.outline import Found
from plansurvive.plans.flow.values import Composer
from plansurvive.plans.large_value import Composed, LargeValue
from plansurvive.plans.model import Step
from plansurvive.plans.model.opaque import scanned
from plansurvive.plans.run import Run, Status

CONTENT = "plan:"
"""Key in `StepCall.values` of the child plan that a call runs; no step has such an id."""
DEFINITION = "tool:"
"""Key in `StepCall.values` of what a server's tool was when the plan was checked."""
_DOMAIN = "plans: call of a step, 1"
"""First part of what is hashed: another form of the digest gets another number."""


class StepCall(NamedTuple):
    """One call of a step's tool."""

    tool: str
    args: dict[str, Any]
    """Values filled in, except where they are stored outside history."""
    queue: str | None
    """Task queue whose workers make the call; None: that of the workflow."""
    workspace: str
    """Absolute directory; empty before a worker has checked the plan."""
    values: dict[str, Any]
    """By step, the values that the worker fills in: `{"sha256": ...}` of a stored one, `{"value": ...}` beside it."""
    directory: DirectoryIdentity | None = None
    """Which directory the workspace is; None where no worker has said so."""

    @property
    def network(self) -> bool:
        """Whether the call asks for network access (`network: true`)."""
        return self.args.get("network") is True

    @property
    def kind(self) -> str:
        """What `remember` covers, in words: tool, network access, queue and workspace, whatever the arguments."""
        where = f" on queue {self.queue}" if self.queue else ""
        if DEFINITION in self.values:
            where = f" as it is now ({self.values[DEFINITION]['sha256'][:12]}){where}"
        return f"{self.tool}{' with network' if self.network else ''}{where} in {self.workspace or 'the workspace'}"


_ONE_FORM = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


class Upcoming(NamedTuple):
    """The call of a step as known now. `is_whole`: nothing in it depends on a value that is not known yet."""

    call: StepCall
    is_whole: bool
    is_written: bool
    """Nothing in it comes from another step: whoever read the plan has read the call."""


def digest_of(call: StepCall, proposal: Mapping[str, Any] | None = None) -> str:
    """SHA-256 of the call in hexadecimal digits; of the call and the `proposal` that a person decides about, if any.

    Cheap: one pass over the arguments, whatever the size of the plan.
    """
    whole: list[Any] = [_DOMAIN, call.tool, call.args, call.queue, call.workspace, call.network, call.values, proposal]
    if call.directory is not None:  # what stays the same over a restart of the machine
        whole += [call.directory.inode, call.directory.born]
    return digest_of_data(whole)


def digest_of_data(data: Any) -> str:
    """SHA-256 of JSON data in its one form: keys sorted, ASCII."""
    return hashlib.sha256(_ONE_FORM.encode(data).encode()).hexdigest()


def call_of(run: Run, step: Step, filled: Filled, values: StepValues) -> StepCall:
    """The call with these arguments."""
    left = [*filled.deferred, *filled.withheld]
    found = {root: values.identity(root) for place in left for root in _roots(filled.args, place)}
    spec = run.facts.tools.get(step.tool)
    if spec is not None and spec.definition:
        found[DEFINITION] = {"sha256": spec.definition}
    state = run.steps[step.id]
    if state.parts and (content := loaded(state.child, filled.args)):
        found[CONTENT] = {"sha256": content}
    return StepCall(step.tool, filled.args, run.queue_of(step), run.workspace_of(step), found, run.directory_of(step))


def upcoming(run: Run, step: Step, args: dict[str, Any] | None = None) -> Upcoming:
    """The call that the step would make if it started now; with its references as written where a value is missing.

    `args`: arguments instead of the step's.
    """
    if step.is_block:
        return Upcoming(_block(run, step), is_whole=True, is_written=True)
    values = StepValues(run, (), step.id)
    written = run.args_of(step) if args is None else args
    try:
        filled = filled_args(run, step, values, args)
        if size_of(filled.args) > MAX_ARGS_CHARACTERS:
            raise BadReference("the arguments are too long", "ARGS_TOO_LARGE")
        call = call_of(run, step, filled, values)
    except (BadReference, BadExpression):
        return Upcoming(call_of(run, step, Filled(written, []), values), is_whole=False, is_written=False)
    roots = [] if run.literal else [each.root for each in find(scanned(step.tool, written)) if values.means(each.root)]
    # `fill` leaves a text with a stored value to the worker, and does not look at what else it mentions.
    is_whole = all(root in values.inline or root in values.stored for root in roots)
    return Upcoming(call, is_whole, is_written=not roots)


class StepValues:
    """The values a step may use, by root. `inline` ones are filled in here, `large` ones by the activity.

    `step_id`: the step, if it may stand inside a block or loop: there names mean what they mean in its place.
    """

    def __init__(self, run: Run, needs: Iterable[str], step_id: str = "") -> None:
        self._run, self._step_id = run, step_id if run.opened or run.closing else ""
        self.inline: dict[str, Any] = {INPUTS: run.inputs} if run.plan.inputs else {}
        self.large: dict[str, LargeValue] = {}
        self.composed: dict[str, Composed] = {}
        self.add(needs)

    def add(self, names: Iterable[str]) -> None:
        """Add the values of further steps and loop variables; steps without a value are ignored."""
        for name in names:
            found = self._find(name)
            if found is None or name in self.inline or name in self.stored:
                continue
            if found.step_id is None:
                self.inline[name] = found.value
                continue
            state = self._run.steps.get(found.step_id)
            if state is None or state.status is not Status.COMPLETED or state.result is None:
                continue
            if state.result.large is not None:
                self.large[name] = state.result.large
            elif state.result.composed:
                self._add_composed(name, found.step_id)
            else:
                self.inline[name] = state.result.value

    def means(self, name: str) -> bool:
        """Whether a name stands for a step or a loop variable here."""
        return self._find(name) is not None

    def _find(self, name: str) -> Found | None:
        if self._step_id:
            return self._run.outline.find(self._step_id, name)
        return Found(name) if name in self._run.steps else None

    def _add_composed(self, name: str, step_id: str) -> None:
        given = self._run.batch.composed.get(step_id) if self._run.batch is not None else None
        found = given or Composer(self._run.outline, self._run.opened, self._run.steps).composed(step_id)
        if found.parts:
            self.composed[name] = found
        else:
            self.inline[name] = found.value

    @property
    def stored(self) -> Mapping[str, LargeValue | Composed]:
        """The values that only the activity can fill in, as they are not, or not all, in the run."""
        return {**self.large, **self.composed} if self.composed else self.large

    def loaded(self, condition: str) -> Mapping[str, Any]:
        """The inline values, for a condition. Raises BadExpression if it uses a value stored outside history.

        Of a value with streams, such as the long output of a command, it may use the fields that are short.
        """
        known: dict[str, Any] = {}
        for name in roots_of(condition):
            if name in self.large and reaches(condition, name) <= self.large[name].known.keys():
                known[name] = self.large[name].known
            elif name in self.stored:
                raise BadExpression(
                    f"the value of '{name}' has {self.stored[name].bytes} bytes, too large for a condition;"
                    " add a step that extracts what the condition needs"
                )
        return {**self.inline, **known} if known else self.inline

    def identity(self, root: str) -> dict[str, Any]:
        """What tells a value from others: the content hash of a stored one, else the value itself."""
        if root in self.large:
            return {"sha256": self.large[root].sha256}
        if root in self.composed:
            found = self.composed[root]
            return {"value": found.value, "parts": [[part.place, part.large.sha256] for part in found.parts]}
        return {"value": self.inline.get(root)}


def filled_args(
    run: Run, step: Step, values: StepValues, args: dict[str, Any] | None = None, budget: Budget | None = None
) -> Filled:
    """The arguments of a step's next call (or `args`) with references filled in. Raises BadReference."""
    args = run.args_of(step) if args is None else args
    spec = run.facts.tools.get(step.tool)  # unknown until a worker has checked the plan
    if run.literal or hold_no_text(args):
        return Filled(args, [])
    mine = scanned(step.tool, args)
    roots = [reference.root for reference in find(mine)]
    values.add(roots)
    own = set[str]()
    if spec is not None and spec.withheld:
        own = {root for root in spec.withheld if root in roots and not values.means(root)}
    filled = fill(mine, values.inline, spec.quoting if spec else {}, [*values.stored, *sorted(own)], budget)
    deferred, withheld = filled.deferred, list[Location]()
    if own:
        # What names a value of the worker's own stays as it is written, for a layer around the attempt. The digest has
        # its place as well: an approval of a plain text that looks like `{{secret.x}}` must not approve the secret.
        withheld = [place for place in deferred if not own.isdisjoint(_roots(filled.args, place))]
        deferred = [place for place in deferred if place not in withheld]
    return Filled({name: filled.args.get(name, args[name]) for name in args}, deferred, withheld)


def size_of(args: dict[str, Any]) -> int:
    """Approximate size of arguments, in characters of their texts."""
    size, stack = 64, [args]
    while stack:
        item: Any = stack.pop()
        if isinstance(item, (dict, Mapping)):
            children: Iterable[Any] = item.values()
        elif isinstance(item, list):
            children = item
        else:
            continue
        for child in children:
            if isinstance(child, str):
                size += len(child)
            elif type(child) not in PLAIN:
                stack.append(child)
    return size


def carries(run: Run, step: Step) -> bool:
    """Whether what the step's tool would send tells a step's value, or is what a model chose while the plan ran.

    With strict approvals, whatever is sent does. So does a request that is made only if some content allows it.
    """
    if not run.facts.tools[step.tool].sends:
        return False
    if run.facts.strict_approvals:
        return True
    sent = {name: value for name, value in run.args_of(step).items() if name in run.facts.tools[step.tool].sends}
    if not sent or run.literal:
        return bool(sent)
    values = StepValues(run, (), step.id)
    if any(r.root != INPUTS and (values.means(r.root) or not is_literal(r, run.steps)) for r in find(sent)):
        return True
    places = dict.fromkeys(name for each in (step.id, template_of(step.id)) for name in lineage(each))
    own = (*(mark for name in places for mark in (f"+ {name}:", f"~ {name}.")), "and ")  # the last: what was not listed
    if any(line.startswith(own) for each in run.revisions if each.by == "llm" for line in each.diff):
        return True
    return is_controlled(run, step)


def is_controlled(run: Run, step: Step) -> bool:
    """Whether it follows from content that the step is called at all."""
    outline = run.outline

    def above(name: str) -> Iterable[str]:
        node = outline.nodes.get(name)
        return [] if node is None else [each for each in (node.parent, node.scope) if each is not None]

    def needs(name: str) -> Iterable[str]:
        meant = (outline.find(name, root) for root in dependencies(outline.step(name)))
        ids = (found.step_id for found in meant if found is not None)
        return [each for each in ids if each is not None and each in outline]

    return step.id in outline and depends_on_content(step.id, outline.step, above, needs)


def _block(run: Run, step: Step) -> StepCall:
    """A block as a call: its steps as they are written. Each of them is decided about for itself, if it asks."""
    rows = step.model_dump(
        mode="json", include={"steps", "switch", "finally_"}, exclude_none=True, exclude_defaults=True
    )
    return StepCall("", rows, run.queue_of(step), run.workspace_of(step), {}, run.directory_of(step))


def _roots(args: Any, place: Location) -> Iterable[str]:
    for key in place:
        args = args[key]
    return dict.fromkeys(reference.root for reference in in_text(args))

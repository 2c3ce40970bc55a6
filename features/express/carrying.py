"""What of a run goes with a segment: the steps of its reach, what they use, and of a loop the items that may run in it.

A plan has as many segments as its steps fill, so what each carries must not grow with what has been done: of a long
loop there is a window from its first item that has not ended to the last that the segment may begin, and of the files
that the run has seen the stamps of those that what goes along speaks of. Of all other files there are digests: a call
that names one of these is left to the workflow.
"""

from __future__ import annotations

import itertools
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import xxhash

from plansurvive.plans.definition.dependencies import dependencies, outside_roots
from plansurvive.plans.definition.scopes import walk_step
from plansurvive.plans.execution.file_tracking import MAX_STAMPS, names_of_files
from plansurvive.plans.execution.schedule import Schedule, bare
from plansurvive.plans.expressions.references import INPUTS, Filled, find
from plansurvive.plans.file_stamps import FileTracker
from plansurvive.plans.flow.batches.split import is_split
from plansurvive.plans.flow.containers import has_ended
from plansurvive.plans.flow.ids import instance_id, lineage
from plansurvive.plans.flow.opened import Kept, Opened
from plansurvive.plans.flow.progress import may_begin_more
from plansurvive.plans.flow.values import Composer
from plansurvive.plans.model import Step
from plansurvive.plans.receipts import Receipts
from plansurvive.plans.run import DONE, Run, Status, StepState, own_steps, text_of
from plansurvive.plans.run.again import is_only_listed

FEW_STAMPS = 200
"""So many stamps go along, whatever they are of."""
FEW_ENDED = 64
"""A loop of no more items than a segment has steps goes along whole until so many of them have ended."""
_WORD = re.compile(r'[^"\\/\s{}\[\](),:;=]+')
_DIGEST_BYTES = 4


class Carried(NamedTuple):
    """What goes with a segment."""

    run: str
    """The run, as JSON for `plans.run.run_of`."""
    partial: dict[str, int]
    """Loops of which only a window goes along, with the number of items behind it."""
    unseen: str
    """Digests of the names of files whose stamps stay, in base64."""


class Unseen:
    """Files that the run has seen, and whose stamps did not come along: a call that names one is not made here."""

    def __init__(self, digests: str = "") -> None:
        packed = b64decode(digests)
        places = range(0, len(packed), _DIGEST_BYTES)
        self._digests = frozenset(packed[place : place + _DIGEST_BYTES] for place in places)

    def reason_against(self, run: Run, step: Step, filled: Filled) -> str:
        """Why a call with these arguments cannot be made; empty if it can."""
        if not self._digests:
            return ""
        if ["path"] in filled.deferred:
            return "its path is in a value outside history, and not all file stamps are here"
        named = next((name for name in names_of_files(run, step, filled) if _digest(name) in self._digests), "")
        return f"the file stamp of {named} is not here" if named else ""


class Unlisted:
    """Loops without the items that are written in them. Kept for a run, as each item is searched for references."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Step, Step]] = {}

    def of(self, step: Step, run: Run) -> Step:
        """The step; a loop that has begun, without the items that are written in it, and that its progress has."""
        if step.for_each is None or step.id not in run.opened or isinstance(step.for_each.items, str):
            return step
        whole, bare = self._known.get(step.id, (None, step))
        if whole is not step:  # an edit brings another one
            items = [each for each in step.for_each.items if find(each)]  # what they use is still what they use
            bare = step.model_copy(update={"for_each": step.for_each.model_copy(update={"items": items})})
            self._known[step.id] = step, bare
        return bare


def carried(schedule: Schedule, names: Collection[str], items: int, unlisted: Unlisted | None = None) -> Carried:
    """What goes along if these steps of the plan do. `items`: how many more of one loop the segment may begin.

    `unlisted`: the same for all segments of a run.
    """
    run, whole, unlisted = schedule.run, dict.fromkeys(names), unlisted or Unlisted()
    states = _needed(schedule, whole)
    steps = [
        _apart(unlisted.of(each, run), whole, states) if each.id in whole else _bare(each)
        for each in run.plan.steps
        if each.id in whole or each.id in states
    ]
    inside = _Inside(schedule, items)
    for name in whole:
        inside.enter(name)
    opened = {name: inside.opened[name] for name in schedule.containers.hungry if name in inside.opened}
    small = run.model_copy(
        update={
            "plan": run.plan.model_copy(update={"steps": steps}),
            "options": run.options.model_copy(update={"inputs": {}}),
            "facts": run.facts.model_copy(update={"tools": _tools(run, steps)}),
            "inputs": run.inputs if _use_inputs(run, steps) else {},
            "steps": states | inside.states,
            # The loops whose next items begin stay in their order: the segment begins these as the workflow does.
            "opened": opened | inside.opened,
            "overrides": {name: each for name, each in run.overrides.items() if _is_in(whole, name)},
            "pins": {name: each for name, each in run.pins.items() if _is_in(whole, name)},
            "kept": _kept(run, whole, inside),
            "decisions": {name: each for name, each in run.decisions.items() if name in inside.states},
            "edited": {name: each for name, each in run.edited.items() if _is_in(whole, name)},
            "notes": [each.model_copy(update={"text": None, "large": None}) for each in run.notes],
            "log": [],
            # That an LLM has changed the plan stays known: who chose a call may decide whether it may be made.
            "revisions": [
                each.model_copy(update={"diff": [], "before": None}) for each in run.revisions if each.by == "llm"
            ][-1:],
            "problems": [],
            "draft": "",
            "receipts": Receipts(),
            "value": None,
        }
    )
    if small.batch is not None and inside.opened:
        small.batch = small.batch.model_copy(update={"items": [], "keys": []})
    small.agents = {}
    small.files = FileTracker(notes_seen=run.files.notes_seen)
    unseen = ""
    if len(run.files.stamps) <= FEW_STAMPS:
        small.files.stamps = run.files.stamps
    else:
        words = set(_WORD.findall(text_of(small)))
        spoken_of = [name for name in run.files.stamps if _is_spoken_of(name, words)][-MAX_STAMPS:]
        small.files.stamps = {name: run.files.stamps[name] for name in spoken_of}
        rest = (_digest(name) for name in run.files.stamps if name not in small.files.stamps)
        unseen = b64encode(b"".join(rest)).decode()
    return Carried(text_of(small), inside.partial, unseen)


@dataclass
class _Inside:
    """Collects the states inside steps, as far as a segment needs them."""

    schedule: Schedule
    items: int
    states: dict[str, StepState] = field(default_factory=dict)
    opened: dict[str, Opened] = field(default_factory=dict)
    partial: dict[str, int] = field(default_factory=dict)

    def enter(self, name: str) -> None:
        """Take a step, and what has begun inside it."""
        run, node = self.schedule.run, self.schedule.outline.nodes[name]
        self.states[name] = run.steps[name]
        if name not in run.opened:
            return
        opened = run.opened[name]
        self.opened[name] = opened
        if node.kind != "each" or is_split(node.source.for_each) or opened.items is None:
            for child in node.children:
                self.enter(child)
            return
        first, last = self._window(name, opened, node.children)
        if (first, last) != (0, len(opened.items)):
            self.partial[name] = len(opened.items) - last if may_begin_more(node.source, opened) else 0
            self.opened[name] = _seen_from(opened, first, last)
        for child in node.children[first:]:
            if name in self.partial and has_ended(run.steps[child]):
                self.states[child] = bare(run.steps[child])
            else:
                self.enter(child)

    def _window(self, name: str, opened: Opened, children: list[str]) -> tuple[int, int]:
        """The first item that goes along, and the one after the last."""
        schedule, total = self.schedule, len(opened.items or ())
        states, step = schedule.run.steps, schedule.outline.nodes[name].source
        # From the last item back to the first that has not ended: of thousands that have, none is looked at.
        first, unfinished = len(children), schedule.containers.unfinished(name)
        while first and unfinished:
            first -= 1
            unfinished -= not has_ended(states[children[first]])
        if total <= self.items and first < FEW_ENDED:
            return 0, total
        return first, min(total, opened.began + self.items) if may_begin_more(step, opened) else opened.began


def _seen_from(opened: Opened, first: int, last: int) -> Opened:
    """The progress of a loop that has these items alone. What has failed in it counts where the loop ends."""
    return opened.model_copy(
        update={
            "items": (opened.items or [])[first:last],
            "keys": [opened.key(index) for index in range(first, last)],
            "began": opened.began - first,
            "first": opened.first + first,
            "failed": 0,
        }
    )


def _needed(schedule: Schedule, whole: dict[str, None]) -> dict[str, StepState]:
    """The states of what the steps depend on and that has ended. Adds to the steps what has to go along whole."""
    run, used = schedule.run, dict[str, bool]()
    for name in list(whole):
        begun = schedule.step(name) if name in run.opened else None
        for need, uses in schedule.needs(name).items():
            if not uses and run.steps[need].status is Status.COMPLETED:
                continue  # a step that ends a wide plan waits for thousands
            if need not in whole:  # the list of a loop that has begun is in its items
                uses = uses and (begun is None or not is_only_listed(begun, need))
                used[need] = used.get(need, False) or uses
    for name, own in own_steps(run).items():  # a step that was edited inside a block may use more than the block did
        outside = (need for need in dependencies(own) if need not in whole) if _is_in(whole, name) else ()
        used |= {need: True for need in outside if need in run.steps and run.steps[need].status in DONE}
    states = dict[str, StepState]()
    for name, uses in used.items():
        if (state := _ended(schedule, name, uses)) is None:
            whole[name] = None
        else:
            states[name] = state
    return states


def _ended(schedule: Schedule, name: str, uses: bool) -> StepState | None:
    """The state of a step that has ended, with its value if that is used.

    None: it is a block or loop whose value is partly stored outside history, and has to go along as a whole.
    """
    run, state = schedule.run, schedule.run.steps[name]
    result = state.result
    if result is not None and result.composed and uses:
        value = Composer(run.outline, run.opened, run.steps).composed(name)
        if value.parts:
            return None
        result = result.model_copy(update={"value": value.value, "composed": False})
    elif result is not None and not uses:
        result = result.model_copy(update={"value": None, "large": None, "composed": False})
    return bare(state).model_copy(update={"result": result, "changes": state.changes[-1:]})


def _apart(step: Step, whole: Collection[str], states: Collection[str]) -> Step:
    """The step without what it has waited for, and does not use."""
    left = [name for name in step.depends_on if name in whole or name in states]
    return step if len(left) == len(step.depends_on) else step.model_copy(update={"depends_on": left})


def _bare(step: Step) -> Step:
    """A step that has ended: who uses its value needs its name."""
    return Step(id=step.id, tool="ended")


def _tools(run: Run, steps: Iterable[Step]) -> dict[str, Any]:
    """The tools of steps, of those inside them, and of those that were edited there."""
    every = [each for step in (*steps, *own_steps(run).values()) for _, each in walk_step(step)]
    called = {each.tool for each in every} | {each.undo.tool for each in every if each.undo is not None}
    return {name: spec for name, spec in run.facts.tools.items() if name in called}


def _use_inputs(run: Run, steps: Iterable[Step]) -> bool:
    return bool(run.inputs) and any(INPUTS in outside_roots(step) for step in (*steps, *own_steps(run).values()))


def _is_in(names: Collection[str], step_id: str) -> bool:
    """Whether a step is one of these, or inside one of them."""
    return any(name in names for name in lineage(step_id))


def _kept(run: Run, whole: Collection[str], inside: _Inside) -> Kept:
    """What an earlier run left of the steps that may begin in the segment."""
    if not (run.kept.steps or run.kept.items or run.kept.stale):
        return Kept()
    windows = {name: frozenset(_ids(name, inside.opened[name])) for name in inside.partial}

    def goes(name: str) -> bool:
        ids = list(lineage(name))
        return ids[-1] in whole and all(
            inner in windows[outer] for inner, outer in itertools.pairwise(ids) if outer in windows
        )

    return Kept(
        steps={name: each for name, each in run.kept.steps.items() if goes(name)},
        opened={name: each for name, each in run.kept.opened.items() if goes(name)},
        items={name: each for name, each in run.kept.items.items() if goes(name)},
        stale=[name for name in run.kept.stale if goes(name)],
    )


def _ids(name: str, opened: Opened) -> Iterator[str]:
    return (instance_id(name, opened.key(index)) for index in range(len(opened.items or ())))


def _is_spoken_of(path: str, words: Collection[str]) -> bool:
    """Whether the name of a file, or what is before its suffix, is among the words."""
    name = path.rpartition("/")[2]
    return name in words or name.partition(".")[0] in words


def _digest(name: str) -> bytes:
    return xxhash.xxh32_digest(name.encode(errors="surrogatepass"))

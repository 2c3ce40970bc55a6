"""Why a step stands as it does: what `plan why` says, to the first causes.

Of one that has not completed: what it waits for, or why it failed or was skipped (`standing`). Of one that has: why its
tool was called, or which earlier run its result is from.

A changed argument that holds the value of another step has that step as its cause, if it ran itself: so the answer ends
at a file that somebody edited, an argument that is written in the plan, a tool, or a result that was not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from plansurvive.features.cache.model import CacheNote, Difference
from plansurvive.features.cache.rules import asked, note_of, refusal
from plansurvive.features.cache.standing import standing
from plansurvive.plans.children.family import is_of_earlier_run, members_of
from plansurvive.plans.definition.scopes import FINALLY, UNDO
from plansurvive.plans.expressions.references import find
from plansurvive.plans.flow.ids import inner_id
from plansurvive.plans.model import Step, Value
from plansurvive.plans.run import Run
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.progress.closing import undo_text
from plansurvive.plans.views.steps.row import row

MAX_STEPS = 50
"""Steps that are told of, the one that was asked about first."""
_WORDS = {
    "first": "no earlier run of this step is known, of a plan with this title",
    "fresh": "the run was started with --no-cache",
    "since": "the earlier result is not one of the plan that --since names",
    "gone": "the earlier result is not kept any more",
    "damaged": "what was kept of the earlier result was altered on disk, so it was not used",
    "conflict": "a file that it would have re-created is there with another content, which this run may not replace",
}
_PARTS = {
    "tool": "the tool has another version",
    "environment": "the workspace, a variable that commands get, or cache.reads is another one",
}


class Cause(Value):
    """What is known of one step."""

    step_id: str
    status: str
    taken_from: str = Field(default="", description="PLAN/STEP whose result it has.")
    cache: CacheNote | None = None
    reasons: list[str] = Field(
        description="Sentences: why it has not completed, or why its tool was called, or what its result is."
    )
    steps: list[str] = Field(
        default_factory=list, description="Steps that explain it further: it waits for them, or used their values."
    )


class Why(Value):
    """Why a step stands as it does."""

    plan_id: str
    step_id: str
    causes: list[Cause] = Field(description="The step, and those that made it run, each before its own causes.")

    @property
    def text(self) -> str:
        """The answer in rows."""
        return "\n".join(row for cause in self.causes for row in _rows(cause))


def why(run: Run, step_id: str) -> Why:
    """Why a step waits, runs, failed or was skipped, or was run. Raises Refused UNKNOWN_STEP."""
    if step_id not in run.steps or run.step_of(step_id) is None:
        last = {inner_id(FINALLY, each.id) for each in run.plan.finally_ or ()}
        if step_id in last - run.steps.keys():
            waits = Cause(
                step_id=step_id,
                status="pending",
                reasons=["it has not started: all other steps end before those of `finally` start"],
            )
            return Why(plan_id=run.plan.id or "", step_id=step_id, causes=[waits])
        raise unknown_step(step_id, run)
    found: dict[str, Cause] = {}
    waiting = [step_id]
    while waiting and len(found) < MAX_STEPS:
        name = waiting.pop(0)
        if name not in found:
            found[name] = _cause(run, name)
            waiting += found[name].steps
    return Why(plan_id=run.plan.id or "", step_id=step_id, causes=list(found.values()))


def reasons_of(note: CacheNote) -> list[str]:
    """What a note says, in sentences; without the steps whose values changed an argument."""
    if note.taken_from:
        when = f", of {note.made:%Y-%m-%d %H:%M:%S} UTC" if note.made else ""
        return [f"its result is that of {note.taken_from}{when}"]
    return _sentences(note, lambda _: [])


def _cause(run: Run, step_id: str) -> Cause:
    cause = _of_run(run, step_id)
    became = undo_text(run, step) if (step := run.step_of(step_id)) is not None else ""
    if not became:
        return cause
    by = [inner_id(step_id, UNDO)] if inner_id(step_id, UNDO) in run.steps else []
    return cause.model_copy(update={"reasons": [*cause.reasons, f"since then: {became}"], "steps": [*cause.steps, *by]})


def _of_run(run: Run, step_id: str) -> Cause:
    state, step = run.steps[step_id], run.step_of(step_id)
    if step is not None and (stands := standing(run, step)) is not None:
        return Cause(step_id=step_id, status=state.status.value, **stands._asdict())
    note = note_of(state.result)
    given: dict[str, Any] = {"step_id": step_id, "status": state.status.value, "cache": note}
    if note is None or step is None:
        return Cause(**given, reasons=[_unasked(run, step)])
    if note.taken_from:
        return Cause(**given, taken_from=note.taken_from, reasons=reasons_of(note))
    steps = list(dict.fromkeys(name for each in note.differences for name in _steps_in(run, step, each)))
    return Cause(**given, reasons=_sentences(note, lambda each: _steps_in(run, step, each)), steps=steps)


def _unasked(run: Run, step: Step | None) -> str:
    spec = run.facts.tools.get(step.tool) if step is not None else None
    state = run.steps[step.id] if step is not None else None
    if state is not None and is_of_earlier_run(run, state):
        return f"its tool was not called in this run: it was done before '{run.resumes}' was continued as this one"
    if step is not None and state is not None and (names := [each.id for each in members_of(run, step, state)]):
        return f"it was done by '{names[-1]}': plan why {names[-1]} STEP says why each of its calls was made"
    if step is None or spec is None:
        return "it calls no tool; ask about the steps inside it"
    if run.literal:
        return f"it {row(run.steps[step.id]).how}; the model asked for this call"
    if not asked(run, step, spec):
        how = row(run.steps[step.id]).how
        return f"it {how}; its tool was called, as neither plan nor step asks for earlier results (`cache: true`)"
    if refused := refusal(run, step, spec):
        return f"its tool was called: {refused}"
    return "its tool was called: its worker takes no results (PLANS_CACHE=off)"


def _sentences(note: CacheNote, steps_in: Callable[[Difference], list[str]]) -> list[str]:
    if note.why == "never":
        return [f"its tool was called: {note.unkept}"]
    rows = [f"its tool was called: {_WORDS[note.why]}"] if note.why in _WORDS else []
    rows += [_sentence(each, steps_in(each)) for each in note.differences]
    rows += [f"and {note.more} more differences"] if note.more else []
    rows += [f"compared with {note.compared}"] if note.compared and note.differences else []
    return [*rows, *([f"its result is not kept for later runs: {note.unkept}"] if note.unkept else [])]


def _sentence(each: Difference, steps: list[str]) -> str:
    if each.what == "argument":
        holds = f", which holds a value of {' and '.join(steps)}" if steps else ""
        return f"argument {each.name} changed{holds}"
    if each.what == "file":
        how = "was not there" if not each.before else "is not there any more" if not each.after else "changed"
        return f"file {each.name} {how}: {each.before or 'none'} -> {each.after or 'none'}"
    return _PARTS.get(each.what, each.what)


def _steps_in(run: Run, step: Step, each: Difference) -> list[str]:
    """The steps whose values an argument holds, by the ids they have at run time."""
    if each.what != "argument":
        return []
    roots = dict.fromkeys(reference.root for reference in find(run.args_of(step).get(each.name)))
    found = [run.outline.find(step.id, root) for root in roots]
    return [each.step_id for each in found if each is not None and each.step_id in run.steps]


def _rows(cause: Cause) -> list[str]:
    return [f"{line(cause.step_id)}: {line(cause.reasons[0])}", *(f"  {line(each)}" for each in cause.reasons[1:])]

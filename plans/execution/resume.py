"""Resume and rerun: a new run built from an ended one, which is not changed.

Retained: completed steps with their values and files, steps that people skipped, the log, file stamps and agents.md.
Run again: steps that failed, were denied, blocked or never ran (`resumed`), and steps that read a file which has
changed since, if nothing that is done rests on what they read (`with_read_again`); also one step and all its
dependents (`rerun_from`); or only one step (`rerun_only`). The new run is a draft: a worker validates the plan again
before any step starts.

An approval that a person gave and that was not used stands, for the same call; what was denied asks again, waived or
not. What was approved with `remember`, or by a time limit, ends with its run.

The ended run has what its children did after their last report (`plans.execution.accounts.caught_up`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from plansurvive.plans.definition.dependencies import dependencies
from plansurvive.plans.definition.scopes import FINALLY, UNDO
from plansurvive.plans.editing.next_run import Changed, Replacement, changed
from plansurvive.plans.errors import BadExpression, Refused
from plansurvive.plans.execution.approvals import RULE
from plansurvive.plans.execution.file_tracking import readers, rewritten
from plansurvive.plans.execution.schedule import left_out, reset_to_draft
from plansurvive.plans.execution.tool_history import begun_again
from plansurvive.plans.expressions.conditions import holds, roots_of
from plansurvive.plans.flow.batches.split import begun_items
from plansurvive.plans.flow.ids import is_pattern, matches
from plansurvive.plans.flow.outline import when_of_whole
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Step
from plansurvive.plans.run import Result, Run, Status, StepState, as_it_stands
from plansurvive.plans.run.again import Again, following, joined, kept_of, unfinished, unused, without_inside
from plansurvive.plans.run.step_call import StepValues
from plansurvive.plans.run.undone import outcomes, unclosed, undone_steps
from plansurvive.plans.run.unknown_step import unknown_step
from plansurvive.plans.step_state import SKIPPED
from plansurvive.plans.text.lists import number_of, some

INTERRUPTED = "interrupted"
"""Prefix of `Run.stopped` of an interrupted run."""
LEFT_OUT = "LEFT_OUT"
"""Code of a step that the rerun of a single step skips."""
NAMED = 3
"""Steps to run that the log names."""
MAX_LISTED = 50
"""Steps that read their files again, by name in the log."""
MAX_NAMED = 20
"""Steps of the plan that an error names."""
_RUN = re.compile(r"(.+)-r([1-9][0-9]*)")


def base_id(plan_id: str) -> str:
    """The id of the first run of a plan: `x` for `x-r3`."""
    match = _RUN.fullmatch(plan_id)
    return match[1] if match and int(match[2]) > 1 else plan_id


def run_id(base: str, number: int) -> str:
    """The id of a later run: the second is `x-r2`."""
    return f"{base}-r{number}"


def resumed(run: Run, new_id: str, now: datetime, by: str = "", changes: Sequence[Replacement] = ()) -> Run:
    """A run of the steps that are not done; their agents continue. Raises Refused, also if all steps are done.

    If only a step of `finally` failed, the new run has nothing to do but to end once more.
    """
    again = not_done(run)
    fails_at_end = any(state.closes == FINALLY and state.status is Status.FAILED for state in run.steps.values())
    if not again.names and not fails_at_end:
        raise Refused(
            "every step is done; there is nothing to resume. Use `plan rerun` to run steps again", "NOTHING_TO_DO"
        )
    return continued(run, new_id, now, by, changes)


def continued(run: Run, new_id: str, now: datetime, by: str = "", changes: Sequence[Replacement] = ()) -> Run:
    """As `resumed`, also if all steps are done: of a child plan whose parent was stopped before it learned that."""
    again = not_done(run)
    new = _next(run, changed(run, as_it_stands(run), changes, again), again, new_id)
    _note(run, new, f"resumes plan '{run.plan.id}'", by, now)
    new.agents = {name: agent for name, agent in run.agents.items() if name in again.names}
    for name in (name for name in run.steps if name in again.names):
        child, again_state = run.steps[name].child, new.steps.get(name) or new.kept.steps.get(name)
        if again_state is not None and child is not None and child.plan_id:  # it continues as it was loaded
            again_state.child = child.model_copy(update={"plan_id": "", "report": None})
    return new


def rerun_from(
    run: Run,
    start_at: str | Sequence[str],
    new_id: str,
    now: datetime,
    by: str = "",
    changes: Sequence[Replacement] = (),
) -> Run:
    """A run of a step or several, all their dependents, and the steps that are not done. Raises Refused, if none too.

    `start_at`: ids, and patterns of items such as `each[*].build`.
    """
    asked = [start_at] if isinstance(start_at, str) else list(dict.fromkeys(start_at))
    if not asked:
        known = some([each.id for each in run.plan.steps], MAX_NAMED)
        text = (
            f"name the step to start from (--from STEP), or the only one to run (--only STEP), of {known};"
            f" `plan resume {run.plan.id}` runs what is not done"
        )
        raise Refused(text, "BAD_USAGE")
    names = list(dict.fromkeys(name for each in asked for name in _required(run, each)))
    listed = {each.step_id for each in changes if each.path.startswith("forEach")}
    relisted = listed == set(names) == {each.step_id for each in changes}
    again = joined(following(run, names, relisted), not_done(run))
    new = _next(run, changed(run, as_it_stands(run), changes, again), again, new_id)
    where = " and ".join(f"'{each}'" for each in asked)
    _note(run, new, f"reruns plan '{run.plan.id}' from {where}", by, now)
    return new


def rerun_only(
    run: Run, step_id: str, new_id: str, now: datetime, by: str = "", changes: Sequence[Replacement] = ()
) -> Run:
    """A run of a single step; all others are retained or skipped. Raises Refused if a dependency is not done."""
    step = _require(run, step_id)
    if run.outline.nodes[step_id].parent is not None:
        text = f"'{step_id}' is inside a block or loop; rerun it with --from {step_id}"
        raise Refused(text, "NOT_DONE")
    open_steps = _open(run).names
    lacking = [name for name in dependencies(step) if name in open_steps]
    if lacking:
        text = f"step '{step_id}' needs '{lacking[0]}', which is not done; rerun with --from {lacking[0]}"
        raise Refused(text, "NOT_DONE")
    plan = changed(run, as_it_stands(run), changes, Again({step_id}, set()))
    new = _next(run, plan, Again({step_id}, set()), new_id)
    for other in run.plan.steps:
        if (name := other.id) != step_id and name in open_steps:
            why = f"this run reruns only '{step_id}'"
            left = left_out(why, Result(ok=False, error=why, code=LEFT_OUT, timestamp=now))
            before = begun_again(run, other)
            left.past, left.more_past, left.earlier = before.past, before.more_past, before.earlier
            new.steps[name] = left
    _note(run, new, f"reruns only '{step_id}' of plan '{run.plan.id}'", by, now)
    return new


def not_done(run: Run) -> Again:
    """What runs again: what `_open` has, and what used the value of a loop of which an item is decided anew.

    Within `tolerate` a denied item did not keep the steps behind its loop from running, with null in its place. A step
    that a person skipped stays skipped.
    """
    rest = _open(run)
    reopened = [name for name in rest.within if run.steps[name].status is Status.COMPLETED]
    if not reopened:
        return rest
    behind = following(run, sorted(reopened))
    skipped = {name for name in behind.whole if _code(run.steps[name]) == SKIPPED}
    return joined(rest, Again(behind.whole - skipped, behind.within))


def _open(run: Run) -> Again:
    """What runs again in any case: what is not done, what was undone, and what followed from that.

    A step that depends on one that was undone has built on an effect that is no longer there. Raises Refused for a run
    that undoes another one: it has no steps of its own to run.
    """
    if run.closing is not None and run.closing.of:
        of = run.closing.of
        text = f"plan '{run.plan.id}' only undoes plan '{of}'; continue with `plan undo {of}`, or `plan resume {of}`"
        raise Refused(text, "NOT_A_PLAN")
    undone = list(undone_steps(run) | dict.fromkeys(run.closing.restored if run.closing is not None else ()))
    rest = unfinished(run, _is_done)
    if not undone:
        return rest
    found = joined(following(run, undone), rest)
    stays = {
        name for name in _not_undone(run) if not any(node.id in found.whole for node in run.outline.ancestors(name))
    }
    return Again(found.whole - stays, found.within - stays)


def _not_undone(run: Run) -> set[str]:
    """The steps whose undo was tried in vain: what they did is still there, and a later undo finds them in this run.

    Without child plans of which a part was undone, which run that part again.
    """
    restored = run.closing.restored if run.closing is not None else []
    tried = (name for name, became in outcomes(run) if became.status in ("failed", "skipped") and name not in restored)
    return {name for name in tried if run.steps[name].status is Status.COMPLETED}


def files_read(run: Run) -> dict[str, list[str]]:
    """By path of a tracked file, the done steps that read it with a tool that changes nothing: a resume keeps them.

    Without the files that the plan itself has changed since.
    """
    again, own = not_done(run).names, unclosed(run)
    done = (name for name, state in own.steps.items() if state.status is Status.COMPLETED and name not in again)
    changed_itself = set(rewritten(own))
    return {path: names for path, names in readers(own, done).items() if path not in changed_itself}


class ReadAgain(NamedTuple):
    """A run that is to be resumed after files have changed that its steps read."""

    run: Run
    """In it the steps that are to read again count as not done."""
    again: Mapping[str, str]
    """These steps, each with the path of its file."""
    kept: Mapping[str, str]
    """Steps that keep what they read, as something that is done rests on it, each with the path of its file."""


def with_read_again(run: Run, changed_files: Collection[str], now: datetime) -> ReadAgain:
    """The run with those steps as not done that read one of these files, unless something that is done rests on it.

    A tool that only reads may be called again; what was made of its value is not thrown away unasked. For `resumed` and
    `continued`; the log says why these steps run.
    """
    found = {name: path for path, names in files_read(run).items() if path in changed_files for name in names}
    stale = {name: found[name] for name in run.outline.nodes if name in found}
    again = {name: stale[name] for name in unused(run, stale, _is_done)}
    kept = {name: path for name, path in stale.items() if name not in again}
    if not again:
        return ReadAgain(run, again, kept)
    states = {name: begun_again(run, run.outline.step(name)) for name in again}
    new = run.model_copy(update={"steps": {**run.steps, **states}, "log": list(run.log)})
    for name, path in list(again.items())[:MAX_LISTED]:
        new.note(LogKind.CHANGED, f"step '{name}' runs again: its file '{path}' has changed since", now)
    return ReadAgain(new, again, kept)


def _is_done(state: StepState) -> bool:
    """Whether the step is completed, or skipped by a person or a condition: it is not run again."""
    undecided = state.is_denied or _code(state) == LEFT_OUT
    return state.status in (Status.COMPLETED, Status.SKIPPED) and not undecided


def _next(run: Run, other: Changed, again: Again, new_id: str) -> Run:
    run = unclosed(run)
    new, names = run.model_copy(deep=True), again.names
    plan = other.plan
    new.plan = plan.model_copy(update={"id": new_id, "task_id": plan.task_id or plan.id})
    new.options = run.options.model_copy(
        update={
            "review": run.options.review and run.started is None,  # nobody has begun it
            "continued_by": "",
            "vouched": None,
            "directories": {**run.options.directories, **run.facts.directories},
        }
    )
    reset_to_draft(new)
    new.ledger = new.ledger.model_copy(update={"open": {}})  # a terminated run leaves its own requests open
    new.resumes, new.interrupted, new.aborted, new.agents = run.plan.id or "", False, False, {}
    new.failed_as, new.notices, new.ends_by = "", {}, {}
    # Nobody was asked about other calls in this run, but what was edited, then or now, waives nothing.
    new.unwaived = {}
    new.remembered, new.edited = {}, dict.fromkeys([*run.edited, *sorted(other.unwaived)], RULE)
    denials = (name for name, decision in run.decisions.items() if name in names and not decision.approved)
    before = (name for name in run.denied if not (name in run.decisions and run.decisions[name].approved))
    new.denied = list(dict.fromkeys([*before, *denials]))
    new.kept = kept_of(run, again, _is_done, begun_again)
    new.overrides = other.overrides
    new.pins = {
        name: step for name, step in other.pins.items() if _is_done(new.kept.steps.get(name) or new.steps[name])
    }
    without_inside(new, sorted(name for name in names if run.outline.nodes[name].parent is None))
    for name in sorted(names | {name for name, state in new.kept.steps.items() if not _is_done(state)}):
        # A decision stands if it is a person's own approval of a call that has not been made yet.
        decision, calls = new.decisions.get(name), run.steps[name].calls
        if decision and (calls or decision.remembered or not decision.approved or decision.source == "timeout"):
            del new.decisions[name]
        state = begun_again(run, run.outline.step(name))
        state.args, given = run.steps[name].args if name in new.decisions else None, run.steps[name].answer
        state.answer = given if given is not None and not given.used else None
        (new.steps if name in new.steps else new.kept.steps)[name] = state
    after = {**new.kept.steps, **new.steps}
    done = (name for name, state in after.items() if state.status is Status.COMPLETED and not state.closes)
    new.kept.readers = readers(run, done)
    new.files.invalidate(rewritten(run))  # by the plan itself: not to be reported as somebody's change
    return new


def _code(state: StepState) -> str | None:
    return state.result.code if state.result else None


def _require(run: Run, step_id: str) -> Step:
    step = run.step_of(step_id)
    if step is None:
        raise unknown_step(step_id, run)
    if closes := run.steps[step_id].closes:
        which = "undoes a step" if closes == UNDO else "is a step of `finally`, which runs at the end of each run"
        way = f"`plan {'undo' if closes == UNDO else 'resume'} {run.plan.id}` runs it again"
        raise Refused(f"'{step_id}' {which}, and is not run again from here: {way}", "UNKNOWN_STEP")
    return step


def _required(run: Run, asked: str) -> list[str]:
    """The steps that an id or a pattern names. Raises Refused if it names none."""
    if not is_pattern(asked):
        return [_require(run, asked).id]
    found = [name for name in run.outline.nodes if matches(asked, name) and not run.steps[name].closes]
    if not found:
        raise unknown_step(asked, run)
    return found


def _note(run: Run, new: Run, what: str, by: str, now: datetime) -> None:
    """Write into the log what the new run does with the steps of the one before it."""
    found, who = foreseen(run, new), f" by {by}" if by else ""
    count, items = len(found.runs), sum(found.items.values())
    more = f" and {count - NAMED} more" if count > NAMED else ""
    which = f" ({', '.join(found.runs[:NAMED])}{more})" if count else ""
    starts = f", {number_of(items, 'item')} to start" if items else ""
    retained = len(unclosed(run).steps) - len(_restarted(run, new))
    ends = ", and `finally`" if not count and run.plan.finally_ else ""
    text = f"{what}{who}: {number_of(count, 'step')} to run{which}{starts}{ends}, {retained} retained"
    # What `with_read_again` noted belongs to the new run, whose own log begins with its first entry.
    own = [each for each in new.log if each.kind is LogKind.CHANGED and run.ended is not None and each.time > run.ended]
    new.log = [each for each in new.log if each not in own]
    new.note(LogKind.RESUMES, text, now)
    new.log += [each.model_copy(update={"seq": new.next_seq()}) for each in own]


def outermost(run: Run, names: Collection[str]) -> list[str]:
    """These steps in the plan's order, without those that are inside another one of them."""
    found = (name for name in run.outline.nodes if name in names and not run.steps[name].closes)
    return [name for name in found if not any(node.id in names for node in run.outline.ancestors(name))]


class Foreseen(NamedTuple):
    """What a new run would do; a block or loop stands for all that is inside it."""

    runs: list[str]
    keeps: list[str]
    leaves_out: list[str]
    items: dict[str, int]
    """By loop of which it keeps items, how many others have not started and would."""


def foreseen(run: Run, new: Run) -> Foreseen:
    """What `new`, which resumes or reruns `run`, would do with its steps."""
    again = _restarted(run, new)
    left = {name for name in run.outline.nodes if name in new.steps and _code(new.steps[name]) == LEFT_OUT}
    kept = {name for name in run.outline.nodes if name not in again | left and _is_done(run.steps[name])}
    within = {node.id for name in kept for node in run.outline.ancestors(name)}
    items = {name: count for name in run.outline.nodes if name in again & within and (count := _not_started(run, name))}
    within |= {node.id for name in items for node in (run.outline.nodes[name], *run.outline.ancestors(name))}
    return Foreseen(outermost(run, again - within), outermost(run, kept), outermost(run, left), items)


class Condition(NamedTuple):
    """The condition of a step that a new run starts again, and what is known of it before."""

    when: str
    decided_by: list[str]
    """The steps that run again and whose values it uses: it is known only after them."""
    holds: bool
    """Whether it holds, if no step decides it."""


def conditions(run: Run, new: Run, names: Collection[str]) -> dict[str, Condition]:
    """By step of these, which `new` starts again: its condition. None of a step whose condition cannot be evaluated:
    it fails then.
    """
    again, found = _restarted(run, new), dict[str, Condition]()
    for name in names:
        when = when_of_whole(new.step_of(name) or run.outline.step(name))
        try:
            roots = roots_of(when)
            meant = [each.step_id for root in roots if (each := run.outline.find(name, root)) and each.step_id in again]
            decided_by, values = [each for each in meant if each], StepValues(run, roots, name)
            if when is not None:
                is_met = not decided_by and holds(when, values.loaded(when))
                found[name] = Condition(when, decided_by, is_met)
        except BadExpression:
            continue
    return found


def _restarted(run: Run, new: Run) -> set[str]:
    """The steps of a run that the next one starts again: what is not done there, in containers that are not either."""
    found = set[str]()
    for name, node in run.outline.nodes.items():  # containers come before what is inside them
        state = new.kept.steps.get(name) or new.steps.get(name)
        if state is None or _is_done(state) or _code(state) == LEFT_OUT:
            continue
        if node.parent is None or node.parent in found:
            found.add(name)
    return found


def _not_started(run: Run, name: str) -> int:
    """Of a loop, how many of its items have not started; what is inside them is not known yet."""
    opened, rule = run.opened.get(name), run.outline.step(name).for_each
    if opened is None or opened.items is None or rule is None:
        return 0
    return len(opened.items) - begun_items(rule, opened.began, len(opened.items))

"""A run as plain text (format of seed 000), computed from the Run directly: views of a big plan would be slow.

For `plan show` the same lines are followed by more: id and status of the plan; of each step its id, how it ended, its
value, and who decided.

Control and bidirectional characters in texts of plans and tools are escaped (FAULTS, T18).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from plansurvive.plans.activity_io import PastCall
from plansurvive.plans.execution.deciding.reasons import ASKED_BY_TOOL
from plansurvive.plans.execution.readiness import needed
from plansurvive.plans.execution.tool_history import was_called
from plansurvive.plans.files.changes import one_of
from plansurvive.plans.model import Step
from plansurvive.plans.run import PlanStatus, Run, Status, StepState
from plansurvive.plans.run.undone import shown_steps
from plansurvive.plans.step_state import ASKING
from plansurvive.plans.text.lists import number_of
from plansurvive.plans.text.safe_text import line, quoted
from plansurvive.plans.views import details
from plansurvive.plans.views.models.live import ended_text
from plansurvive.plans.views.progress.closing import undo_text
from plansurvive.plans.views.progress.pending import card
from plansurvive.plans.views.steps.abridged import folded as counted
from plansurvive.plans.views.steps.abridged import foremost, rank
from plansurvive.plans.views.steps.call_text import CALL_CHARACTERS, call_rows
from plansurvive.plans.views.steps.counting import Census
from plansurvive.plans.views.steps.listing import is_cause, troubled
from plansurvive.plans.views.steps.row import Row, denied_ahead, row
from plansurvive.plans.views.steps.rows import files_rows, folded, nested_rows
from plansurvive.plans.views.steps.written import written_rows

ATTEMPTS = 5
"""Maximum number of a step's retried attempts that are listed."""
CALL_ROWS = 40
"""Rows of a call that `plan show` has; `plan pending` has all."""
WRITTEN = 40
"""Rows of what a step of a draft would do."""
_NOT_BEGUN = frozenset({Status.PENDING, Status.BLOCKED, Status.READY})


def text(run: Run, limit: int | None = None, *, detailed: bool = False) -> str:
    """Title, progress, and each step with mark, notes, tools and files.

    `limit`: maximum number of steps; the others are counted on one line. `detailed`: with what the seed does not show.
    """
    return next(texts(run, [limit], detailed=detailed))


def texts(run: Run, limits: Sequence[int | None], *, detailed: bool = False) -> Iterator[str]:
    """The text for each limit; the rows of a step are made once."""
    states, census = [run.steps[step.id] for step in run.plan.steps], Census(run)
    done = sum([is_done(state) for state in states])
    share = sum([census.share(step.id) for step in run.plan.steps]) if census.has_any else done
    percent = f"{100 * share / len(states) if states else 0:.1f}%"
    percent += " with the steps inside" if share != done else ""  # of a loop that runs, its items count as well
    head = [
        f"Plan: {line(run.plan.title or run.plan.id or '')}",
        "=" * 40,
        # An agent's steps are its calls: that all of them are done does not say how far it is.
        f"Calls: {done}/{len(states)} done" if run.literal else f"Progress: {done}/{len(states)} ({percent})",
        *(details.of_plan(run) if detailed else []),
        "",
        "Steps:",
    ]
    positions = {step.id: index for index, step in enumerate(shown_steps(run))}
    inner = troubled(census, run) if census.has_any else {}
    made: dict[int, list[str]] = {}
    for limit in limits:
        shown: Sequence[int] = range(len(states))
        if limit is not None and len(states) > limit:
            shown = foremost([rank(each.status, each.awaiting is not None, each.ended) for each in states], limit)
        for index in shown:
            if index not in made:
                step = run.plan.steps[index]
                nested = nested_rows(census, run, inner.get(step.id, ()), _asked) if inner else ()
                made[index] = [*_step_rows(run, census, step, positions, detailed), *nested]
        rows = [row for index in shown for row in made[index]]
        yield "\n".join(head + rows + _hidden(run, set(shown)) + _closing_rows(run, census, positions, limit, detailed))


def is_done(state: StepState) -> bool:
    """Whether a step counts as done: completed, or skipped by a reviewer or a condition, but not denied."""
    return state.status is Status.COMPLETED or (state.status is Status.SKIPPED and not state.is_denied)


def _hidden(run: Run, shown: Set[int]) -> list[str]:
    """The line that counts the steps not shown, if any."""
    hidden = [run.steps[step.id].status for index, step in enumerate(run.plan.steps) if index not in shown]
    return [f"  {counted(hidden)}"] if hidden else []


def _closing_rows(
    run: Run, census: Census, positions: Mapping[str, int], limit: int | None, detailed: bool
) -> list[str]:
    """The steps that close the plan, below its own: the last ones to begin, if there is not room for all."""
    closing = shown_steps(run)[len(run.plan.steps) :]
    shown = closing if limit is None else closing[-limit:]
    more = [f"  {len(closing) - len(shown)} earlier ones"] if len(shown) < len(closing) else []
    rows = [each for step in shown for each in _step_rows(run, census, step, positions, detailed)]
    return ["", "Closing:", *more, *rows] if closing else []


def _step_rows(run: Run, census: Census, step: Step, positions: Mapping[str, int], detailed: bool) -> list[str]:
    state, index, about = run.steps[step.id], positions[step.id], run.description_of(step)
    stands = row(state)
    head, end = f"  {index}: [{stands.mark}] {line(about or step.id)}", ""
    if detailed:  # commands name a step by its id
        head = f"  [{stands.mark}] {line(step.id)}{f': {line(about)}' if about else ''}"
        end = "" if stands.sign in ("waiting", "pending") else f" · {line(stands.how)}"
    tools, notes = _in_words(_called(run, step, state)), line(_notes(run, step, stands))
    more = details.of_step(run, step) if detailed else []
    if not tools and state.status in _NOT_BEGUN:
        needs: list[Any] = sorted({positions[name] for name in needed(run, step) if name in positions})
        needs = (
            [name for name in needed(run, step) if name in positions or name in step.depends_on] if detailed else needs
        )
        told = f"[{', '.join(map(line, map(str, needs)))}]"
        rows = [head + (f" (depends on: {told})" if needs else "") + end]
        rows += ([f"      Notes: {notes}"] if notes else []) + _asked(run, step, why=detailed) + more
        if detailed and run.status in (PlanStatus.DRAFT, PlanStatus.REVIEW):
            rows += _written(run, step)
        return rows
    if run.opened and (inside := folded(census, step.id)):
        if stands.error and not is_cause(census, run, step.id):
            notes = ""  # the rows of the steps inside it that failed have it
        said = [f"      Notes: {notes}"] if notes else []
        tools_rows = [*_tools_inside(run, census, step.id), *(_kept(run, state) if detailed else ())]
        return [head + end, f"      {inside}", *said, *tools_rows, *files_rows(census, run, step.id), *more]
    files = ", ".join(line(path) + _whose(step, state, path) for path in state.wrote)
    nothing = "" if detailed else "-"
    return [
        head + end,
        *(f"      {each}" for each in run.views.rows(run.plan.id or "", step, state)),
        *_named("Notes", notes or nothing),
        *_named("Tools", tools or nothing),
        *(_kept(run, state) if detailed else ()),
        *_attempts(run, step, state),
        *_named("Files", files or nothing),
        *_long_output(run, step, state),
        *_asked(run, step, why=detailed),
        *more,
    ]


def _kept(run: Run, state: StepState) -> list[str]:
    """That the step ended before this run began, which kept its result and its attempts."""
    if not run.resumes or state.ended is None or (run.started is not None and state.ended >= run.started):
        return []
    return [f"      Kept from plan {line(run.resumes)}"]


def _named(name: str, text: str) -> list[str]:
    """The row of a text; none if there is none."""
    return [f"      {name}: {text}"] if text else []


def _attempts(run: Run, step: Step, state: StepState) -> list[str]:
    """A row for each of the last retried attempts in this run, and the numbers of those before them and in others."""
    if not (state.past or state.more_past):
        return []
    before = Counter(call.run for call in state.past if call.run and not (call.agent or _only_asked(call)))
    retried = [call for call in state.past if call.retried and call.attempt and not call.run]
    texts = [ended_text(call.attempt, None) for call in retried[-ATTEMPTS:] if call.attempt]
    rows = [f"      A{text.removeprefix('a')}" for text in texts]
    # Where an agent makes the calls, those that are not listed are no attempts; `Tools` counts them.
    more = len(retried) - len(rows) + (0 if step.tool in run.views.delegated else state.more_past)
    in_others = [f"      {number_of(number, 'attempt')} in plan {line(name)}" for name, number in before.items()]
    return [*in_others, *([f"      {more} earlier attempts"] if more else []), *(line(row) for row in rows)]


def _long_output(run: Run, step: Step, state: StepState) -> list[str]:
    """Where all of the output is, if it is not in the history."""
    large = state.result.large if state.result else None
    if large is None or not large.streams:
        return []
    return [f"      Output: {sum(large.streams.values()):,} bytes: plan logs {run.plan.id} {quoted(step.id)}"]


def _whose(step: Step, state: StepState, path: str) -> str:
    """Whose a file may be, where that is not known."""
    return f" ({line(one_of(step.id, state.shared_with))})" if path in state.shared else ""


def _asked(run: Run, step: Step, *, why: bool = False) -> list[str]:
    """The whole call that awaits approval, unless it is too long for the answer to a query."""
    if run.steps[step.id].awaiting not in ASKING:
        return []
    asked = card(run, step)
    what = "Question" if asked.is_question else "Call"
    if asked.characters > CALL_CHARACTERS:
        return [f"      {what}: too long to show here; all of it: plan pending {run.plan.id} {quoted(step.id)}"]
    rows = call_rows(asked, why=why)
    if why and len(rows) > CALL_ROWS:
        more = len(rows) - CALL_ROWS
        rows = [*rows[:CALL_ROWS], f"… {more:,} more lines; all of it: plan pending {run.plan.id} {quoted(step.id)}"]
    return [f"      {what}:", *(f"        {row}" for row in rows)]


def _written(run: Run, step: Step) -> list[str]:
    """What a step of a draft would do, as far as there is room: its call, conditions, loop, and the steps inside."""
    rows = list(islice(written_rows(step, indent="      "), WRITTEN + 1))
    if len(rows) <= WRITTEN:
        return rows
    return [*rows[:WRITTEN], f"      … all of it: plan review {line(run.plan.id or '')}"]


def _notes(run: Run, step: Step, stands: Row) -> str:
    state = run.steps[step.id]
    if state.awaiting:
        return stands.word
    why = stands.error or (stands.reason if state.is_denied else "")
    why = why or ("" if stands.reason else denied_ahead(run.decisions.get(step.id), state.status))
    undo = undo_text(run, step) if run.closing is not None else ""
    until = (
        f"continues at {state.deadline:%Y-%m-%d %H:%M:%S} UTC" if stands.sign == "running" and state.deadline else ""
    )
    reason = "" if stands.reason and run.problems and run.stopped.startswith(stands.reason) else stands.reason
    return why or "; ".join(filter(None, [step.notes, state.notes, state.mended, undo, until])) or reason


def _tools_inside(run: Run, census: Census, step_id: str) -> list[str]:
    """A row with the tools called for the steps inside a block or loop, if there were any."""
    counts = Counter[str]()
    delegated, nodes = run.views.delegated, run.outline.nodes
    for name in census.walk(step_id):
        state = run.steps[name]
        if state.past or state.more_past:
            counts.update(_called(run, run.outline.step(name), state))
        elif state.calls and was_called(state) and (tool := nodes[name].source.tool) not in delegated:
            counts[tool] += 1  # of thousands of items, nearly all were called once
    return [f"      Tools: {_in_words(counts)}"] if counts else []


def _in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{line(name)} ({number_of(count, 'call')})" for name, count in counts.items())


def _only_asked(call: PastCall) -> bool:
    """Whether it was refused before the tool was called, as a person must approve it."""
    return call.attempt is not None and call.attempt.code == ASKED_BY_TOOL


def _called(run: Run, step: Step, state: StepState) -> dict[str, int]:
    """How often each tool was called for the step."""
    counts = dict(Counter(call.tool for call in state.past if not _only_asked(call))) if state.past else {}
    if was_called(state):
        counts[step.tool] = counts.get(step.tool, 0) + 1
    if state.more_past:
        rest = {step.tool: state.more_past - sum(state.earlier.values())}  # of a version that did not count by tool
        for tool, number in [*state.earlier.items(), *rest.items()]:
            counts |= {tool: counts.get(tool, 0) + number} if number else {}
    if step.tool in run.views.delegated:
        counts.pop(step.tool, None)
    return counts

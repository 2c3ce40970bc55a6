"""The summary of a plan, final or so far: as numbers, and as SUMMARY.md.

Computed from the Run directly, not from its view: it is part of every plan's end, and clients wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pydantic import Field

from plansurvive.plans.children.asked import asked_below
from plansurvive.plans.definition.scopes import FINALLY
from plansurvive.plans.execution.approvals import DENIED, is_changed
from plansurvive.plans.flow.ids import around
from plansurvive.plans.model import Step, Value
from plansurvive.plans.run import ENDED, PlanStatus, Run, Status, StepState
from plansurvive.plans.run.unanswered import lacks_answers_alone
from plansurvive.plans.run.undone import outcomes, shown_steps
from plansurvive.plans.step_state import ASKING
from plansurvive.plans.text.traces import folded
from plansurvive.plans.views.markdown import code, md
from plansurvive.plans.views.models import TokensView, View
from plansurvive.plans.views.models.nested import InsideView
from plansurvive.plans.views.steps.counting import Census
from plansurvive.plans.views.steps.listing import is_cause
from plansurvive.plans.views.steps.row import denied_ahead
from plansurvive.plans.views.steps.words import folded_line, inside_line
from plansurvive.plans.views.views import counts, created, duration, tokens

_IF_ANY = (
    "undone", "undoes", "closing", "phase", "asks", "problems", "deadline", "outdated", "unanswered", "lacks_answers",
    "held_up",
)  # fmt: skip
"""Fields of a summary that are omitted as long as they say nothing."""
MAX_FAILED = 100
"""Failures that a summary has."""


class Failure(Value):
    """A step that failed."""

    step_id: str
    code: str | None = None
    error: str = ""


class Reason(Value):
    """A step that was skipped or blocked, and why."""

    step_id: str
    reason: str = ""


class UndoneStep(Value):
    """A step that was undone, or was to be, when the plan rolled back."""

    step_id: str
    status: str = Field(description="completed, failed, skipped: denied; pending, running: the plan ended before.")
    code: str | None = None
    error: str = ""


class Denial(Value):
    """A step that was denied: skipped, and its dependents permanently blocked."""

    step_id: str
    reason: str = DENIED
    by: str = Field(default="", description="Who denied it; empty if they gave no name, or its time limit did.")
    comment: str = ""


class AskedStep(Value):
    """A step that waits for a person or an event, in the plan or in an agent or child plan below it."""

    plan_id: str = Field(description="The plan to decide in.")
    step_id: str = Field(description="The step; one of an agent or child plan by its path: `deploy/upload`.")
    kind: str = Field(description="approval, recovery, budget, answer, event.")
    event: str = Field(default="", description="Name of the event.")
    since: datetime | None = Field(default=None, description="Since when, as far as known.")
    digest: str = Field(
        default="", description="Of its call, if that was edited: an approval has to say that it is about this one."
    )


class Outdated(Value):
    """A step that keeps what it read from a file which has changed since, as found when the run was resumed."""

    step_id: str
    path: str


class Summary(View):
    """The outcome of a plan in numbers, or its state so far."""

    plan_id: str
    task_id: str = Field(default="", description="The task the plan serves; the plan's id if it names none.")
    title: str = ""
    version: int = Field(default=1, description="Version of the plan, as edits and approvers left it.")
    status: PlanStatus
    counts: dict[str, int] = Field(
        default_factory=dict, description="Steps by status, `denied`, `unanswered` apart; `total`."
    )
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration: float = Field(default=0.0, description="Seconds.")
    deadline: datetime | None = Field(default=None, description="When it must have ended; omitted if never.")
    files_written: list[str] = Field(default_factory=list)
    tokens: TokensView = Field(default_factory=TokensView)
    stopped: str = Field(default="", description="Why no further step could start.")
    failed: list[Failure] = Field(default_factory=list)
    skipped: list[Reason] = Field(default_factory=list)
    denied: list[Denial] = Field(default_factory=list)
    unanswered: list[Reason] = Field(
        default_factory=list, description="Steps that were skipped as no decision came in time; omitted if none."
    )
    lacks_answers: bool = Field(
        default=False,
        description="Nothing but decisions that did not come in time kept it from completing, here and in child plans; "
        "omitted if false.",
    )
    awaiting: list[str] = Field(default_factory=list, description="Steps that await a person's decision.")
    asks: list[AskedStep] = Field(
        default_factory=list, description="What is awaited, here and below; omitted if empty."
    )
    held_up: str = Field(
        default="",
        description="What keeps its steps from starting, such as `waits for its workspace`; omitted if nothing does.",
    )
    problems: int = Field(default=0, description="Problems that keep a draft from starting; omitted if there are none.")
    blocked: list[Reason] = Field(default_factory=list)
    outdated: list[Outdated] = Field(
        default_factory=list,
        description="Steps kept from an earlier run that read files changed since; omitted if none.",
    )
    inside: dict[str, InsideView] = Field(
        default_factory=dict, description="What is inside blocks and loops, by step; omitted if there are none."
    )
    undone: list[UndoneStep] = Field(default_factory=list, description="Steps to undo, the last completed first.")
    undoes: str = Field(default="", description="Id of the ended plan that it undoes; omitted if it is another plan.")
    closing: list[Failure] = Field(default_factory=list, description="Steps of `finally` that failed.")
    phase: str = Field(
        default="", description="`rollback` or `finally` while the plan is being closed; omitted otherwise."
    )

    @property
    def is_completed(self) -> bool:
        """Whether every step was completed, or skipped by a reviewer or a condition."""
        return self.status is PlanStatus.COMPLETED

    @property
    def lacks_answers_alone(self) -> bool:
        """Whether nothing but decisions that did not come in time kept it from completing.

        A plan that ended under 1.0.0 has not recorded that: there a loop or a child plan that failed counts against it.
        """
        undone = all(each.status == "completed" for each in self.undone)
        others = self.failed or self.denied or self.stopped or self.closing or not undone
        return self.lacks_answers or (self.status is PlanStatus.PARTIAL and bool(self.unanswered) and not others)

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON data with all fields, less unset ones of `tokens`, and what closed no plan."""
        tokens = self.tokens.model_dump(mode="json", exclude_unset=True)
        empty = [name for name in _IF_ANY if not getattr(self, name)]
        view = self.model_dump(mode="json", exclude={"inside", *sorted(empty)})
        inside = {name: each.model_dump(mode="json", exclude_unset=True) for name, each in self.inside.items()}
        return view | {"tokens": tokens} | ({"inside": inside} if inside else {})


def summary_of(run: Run) -> Summary:
    """Summarise a run (REQUIREMENTS B9)."""
    census = Census(run)
    denied, opened = list(_denied(run, census)), [step for step in run.plan.steps if step.id in run.opened]
    return Summary(
        plan_id=run.plan.id or "",
        task_id=run.plan.task_id or run.plan.id or "",
        title=run.plan.title,
        version=run.plan.version,
        status=run.status,
        counts=counts(run),
        created_at=created(run),
        started_at=run.started,
        ended_at=run.ended,
        duration=duration(run),
        deadline=run.must_end,
        files_written=list(dict.fromkeys(_files_left(run, census)))[:1_000],
        tokens=TokensView(**tokens(run)),
        stopped=run.stopped,
        failed=[_failure(step, state) for step, state in islice(_failed(run, census), MAX_FAILED)],
        skipped=[_reason(step, state) for step, state in _those(run, Status.SKIPPED) if not state.is_denied][:100],
        denied=[_denial(run, step) for step, state in denied if not state.is_unanswered][:100],
        unanswered=[_reason(step, state) for step, state in denied if state.is_unanswered][:100],
        lacks_answers=lacks_answers_alone(run),
        awaiting=[name for name, state in run.steps.items() if state.awaiting in ASKING][:100],
        asks=list(islice(_asks(run), 100)),
        held_up="; ".join(each.text for each in run.notices.values() if each.holds and run.ended is None),
        problems=len(run.problems),
        blocked=[_blocked(run, step, state) for step, state in _those(run, Status.BLOCKED)][:100],
        outdated=list(islice(_outdated(run), 100)),
        inside={step.id: InsideView(**inside) for step in opened if (inside := census.inside(step.id))},
        undone=_undone(run)[:100],
        undoes=run.closing.of if run.closing is not None else "",
        closing=[
            _failure(step, run.steps[step.id])
            for step in shown_steps(run)
            if run.steps[step.id].closes == FINALLY and run.steps[step.id].status is Status.FAILED
        ][:100],
        phase=run.closing.phase if run.closing is not None and run.ended is None else "",
    )


def _those(run: Run, status: Status) -> list[tuple[Step, StepState]]:
    """The steps with a status, in the plan's order."""
    return [(step, state) for step in run.plan.steps if (state := run.steps[step.id]).status is status]


def _failed(run: Run, census: Census) -> Iterator[tuple[Step, StepState]]:
    """The steps that failed, those inside a block or loop before it; there only those that failed by themselves."""
    if Status.FAILED not in [state.status for state in run.steps.values()]:
        return
    for step in run.plan.steps:
        for name in census.walk(step.id):
            if is_cause(census, run, name):
                yield run.outline.step(name), run.steps[name]
        if run.steps[step.id].status is Status.FAILED:
            yield step, run.steps[step.id]


def _denied(run: Run, census: Census) -> Iterator[tuple[Step, StepState]]:
    """The steps that were denied or not answered, also inside blocks and loops, without the blocks around them."""
    if Status.SKIPPED not in [state.status for state in run.steps.values()]:
        return
    for step in run.plan.steps:
        for name in (*census.walk(step.id), step.id):
            inner = (run.steps[child] for child in census.children(name))
            if run.steps[name].is_denied and not any(each.is_denied for each in inner):
                yield (run.outline.step(name) if name != step.id else step), run.steps[name]


def _outdated(run: Run) -> Iterator[Outdated]:
    return (Outdated(step_id=name, path=path) for path, names in run.kept.readers.items() for name in names)


def _undone(run: Run) -> list[UndoneStep]:
    """What became of the undos, in their order."""
    return [
        UndoneStep(
            step_id=name,
            status=became.status,
            code=became.result.code if became.result else None,
            error=str(became.result.error or "")[:500] if became.result else "",
        )
        for name, became in outcomes(run)
    ]


def _asks(run: Run) -> Iterator[AskedStep]:
    """What the plan waits for, and what is awaited below it."""
    if run.status in ENDED:
        return
    name = run.plan.id or ""
    for step_id, state in run.steps.items():
        if state.awaiting in ASKING:
            kind = next(iter(state.proposal or {}), state.awaiting)
            since = (state.proposal or {}).get("since") or state.changes[-1].time
            digest = state.digest if kind == "approval" and is_changed(run, step_id) else ""
            yield AskedStep(plan_id=name, step_id=step_id, kind=kind, since=since, digest=digest)
        elif (state.awaiting or (state.parts and state.status is Status.RUNNING)) and (
            event := _event(run, step_id)
        ) is not None:
            since = state.changes[-1].time
            yield AskedStep(plan_id=name, step_id=step_id, kind="event", event=event[:200], since=since)
    for below in asked_below(run, list(run.steps)):
        yield from (AskedStep(plan_id=name, step_id=each.path, kind=each.kind) for each in below.asked)


def _event(run: Run, step_id: str) -> str | None:
    """The name of an event that a step waits for, or one below it; None if none does."""
    step = run.step_of(step_id)
    return run.views.event(run.plan.id or "", step, run.steps[step_id]) if step is not None else None


def _files_left(run: Run, census: Census) -> list[str]:
    """The files that steps wrote, except those that a later step deleted."""
    names = dict.fromkeys([name for step in shown_steps(run) for name in (step.id, *census.walk(step.id))])
    states = [run.steps[name] for name in names]
    deleted = {path: _end(state) for state in states for path in state.deleted}
    return [path for state in states for path in state.wrote if path not in deleted or _end(state) > deleted[path]]


def _end(state: StepState) -> datetime:
    """When the step ended; one that has not counts as later than all others."""
    return state.ended or datetime.max.replace(tzinfo=UTC)


def _failure(step: Step, state: StepState) -> Failure:
    result = state.result
    error, code_ = (result.error, result.code) if result else (None, None)
    return Failure(step_id=step.id, code=code_, error=str(error)[:500])


def _reason(step: Step, state: StepState) -> Reason:
    return Reason(step_id=step.id, reason=state.reason[:200])


def _blocked(run: Run, step: Step, state: StepState) -> Reason:
    denied = denied_ahead(run.decisions.get(step.id), state.status)
    return Reason(step_id=step.id, reason=(state.reason or denied)[:200])


def _denial(run: Run, step: Step) -> Denial:
    decision = run.decisions.get(step.id)
    if decision is None:
        return Denial(step_id=step.id)
    return Denial(step_id=step.id, by=decision.by, comment=decision.comment[:200])


def why_failed(summary: Summary, failure: Failure) -> str:
    """Its error, once: of a block or loop, if the failures inside it are listed as well, only how many they are."""
    inside = summary.inside.get(failure.step_id)
    causes = (name for each in summary.failed for name in around(each.step_id))
    return inside_line(inside) if inside is not None and failure.step_id in causes else folded(failure.error)


def why_denied(denial: Denial) -> str:
    """Who denied a step and why, in words; the texts are a person's own."""
    who = f"{denial.reason} by {denial.by}" if denial.by else denial.reason
    return f"{who}: {denial.comment}" if denial.comment else who


def summary_markdown(summary: Summary, steps: str = "") -> str:
    """The content of SUMMARY.md, followed by the steps as text if given."""
    shown = summary.to_json()
    counts = ", ".join(f"{count} {name}" for name, count in summary.counts.items() if name != "total")
    rows = [
        f"# {md(summary.title or summary.plan_id)}",
        "",
        f"- Plan: `{summary.plan_id}`, version {summary.version}",
        f"- Status: {summary.status}",
        f"- Steps: {counts} (of {summary.counts.get('total', 0)})",
        f"- Duration: {summary.duration:.1f} s",
        f"- Created: {shown['createdAt'] or '-'}",
        f"- Started: {shown['startedAt'] or '-'}",
        f"- Ended: {shown['endedAt'] or '-'}",
    ]
    rows += _section("Blocks and loops", [md(folded_line(name, each)) for name, each in summary.inside.items()])
    rows += _section("Failed", [f"`{each.step_id}`: {md(why_failed(summary, each))}" for each in summary.failed])
    rows += _section("Denied", [f"`{each.step_id}`: {md(why_denied(each))}" for each in summary.denied])
    rows += _section("Unanswered", [f"`{each.step_id}`: {md(each.reason)}" for each in summary.unanswered])
    rows += _section("Skipped", [f"`{each.step_id}`: {md(each.reason)}" for each in summary.skipped])
    rows += _section("Blocked", [f"`{each.step_id}`: {md(each.reason)}" for each in summary.blocked])
    rows += _section("Undone", [_undone_row(each) for each in summary.undone])
    rows += _section("Failed at the end", [f"`{each.step_id}`: {md(each.error)}" for each in summary.closing])
    rows += _section("Files written", [code(path) for path in summary.files_written])
    numbers = {name: count for name, count in shown["tokens"].items() if count and not isinstance(count, dict)}
    numbers |= {"cost": summary.tokens.costs} if summary.tokens.cost else {}
    parts = [*_shares("model", summary.tokens.by_model), *_shares("step", summary.tokens.by_step)]
    rows += _section("Tokens", [*(f"{name}: {count}" for name, count in numbers.items()), *parts])
    rows += ["", "## Steps", "", "```", steps, "```"] if steps else []
    return "\n".join(rows) + "\n"


def _undone_row(each: UndoneStep) -> str:
    how = f"{each.status}{f': {each.error}' if each.error else ''}"
    return f"`{each.step_id}`: {md(how)}"


def _shares(kind: str, tokens: dict[str, int]) -> list[str]:
    """Tokens by model or by step, the largest first; planning and models that did not answer have no name."""
    named = sorted(((count, name) for name, count in tokens.items() if name and count), reverse=True)
    return [f"{kind} {code(name)}: {count}" for count, name in named[:50]]


def _section(title: str, items: list[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {item}" for item in items)] if items else []

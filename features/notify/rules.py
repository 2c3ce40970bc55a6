"""What has happened in a run that somebody wants to be notified of: the news that a plan hands to `NotifyWorkflow`.

News names what waits, it does not repeat it: whoever delivers asks the plan for the call as it is then, and whether it
still waits. So a decision that was made meanwhile is not told, and a plan pays one event for it, whatever the size of
its calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from plansurvive.features.notify.model import MoreRules, Told
from plansurvive.plans.execution.approvals import OVERRIDDEN
from plansurvive.plans.log import LogKind
from plansurvive.plans.model import Plan, PlanId, Step, Value
from plansurvive.plans.model.notify import WAITING, Event, NotifyRule
from plansurvive.plans.run import ENDED, PlanStatus, Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.signature import Signature
from plansurvive.plans.step_state import Status, StepState
from plansurvive.plans.text.traces import folded

AT_ONCE = 100
"""Decisions in one piece of news; the others follow in the next ones."""
FAILURES = 5
"""Failed steps that are named when a plan has ended."""
REVIEW = "review"
"""Kind of the decision to begin a plan, and its place among the steps: no step has an empty id."""

WorkflowId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,250}$")]
Kind = Literal["approval", "question", "recovery", "budget", "review"]


class Waiting(Value):
    """A decision that waits for a person."""

    mark: str = Field(description="Which question of the step it is: another call of the step is another one.")
    step_id: str = Field(default="", description="Empty: the plan as a whole, in review.")
    kind: Kind = "approval"
    digest: str = Field(default="", description="Digest of what is decided; empty in a review.")
    since: AwareDatetime


class Remark(Value):
    """A line of the log about the budget, or about an override, which all are notified of."""

    seq: int
    text: str
    time: AwareDatetime
    overridden: bool = False


class News(Value):
    """What is new in one plan, for those whom its rules name. Input of the activity `tell`."""

    plan_id: PlanId
    workflow_id: WorkflowId
    run_id: str = Field(max_length=100, description="The workflow's first run: the same plan for all its life.")
    root: WorkflowId = Field(description="Workflow id of the plan that a person started, which this one works for.")
    title: str = ""
    rules: list[NotifyRule]
    waiting: list[Waiting] = Field(default_factory=list)
    remarks: list[Remark] = Field(default_factory=list)
    ended: Literal["failed", "partial", "completed", "cancelled"] | None = None
    reason: str = Field(default="", description="How it ended: why it stopped, steps by status, what failed.")
    at: AwareDatetime
    proofs: dict[str, Signature] = Field(
        default_factory=dict,
        description="By notice, the signature of the worker that says it; none if it asks for none.",
    )


def effective(run: Run, is_child: bool) -> list[NotifyRule]:
    """The rules for a run: its plan's, its parent's, and those of its worker; each event and target once.

    A child tells only what waits in it: its end is a step's of its parent.
    """
    if not run.plan.notify and MoreRules.feature not in run.options.parts and MoreRules.feature not in run.facts.parts:
        return []
    found, seen = list[NotifyRule](), set[tuple[str, Event]]()
    more = [part.rules for each in (run.options, run.facts) if (part := each.known_part(MoreRules)) is not None]
    for rule in [*run.plan.notify, *chain.from_iterable(more)]:
        events = [each for each in rule.on if (rule.to, each) not in seen and (each in WAITING or not is_child)]
        seen.update((rule.to, each) for each in events)
        if events:
            found.append(rule.model_copy(update={"on": events}))
    return found


def waiting_in(run: Run, awaiting: Iterable[str]) -> list[Waiting]:
    """The decisions of a run that wait and were not handed over yet, at most AT_ONCE, in the order given."""
    found, told = [], run.part(Told)
    if run.status is PlanStatus.REVIEW and "" not in told.waiting:
        since = run.log[-1].time if run.log else run.created
        found = [Waiting(mark=f"{REVIEW}-{run.seq}", kind=REVIEW, since=since)] if since else []
    for name in awaiting:
        state = run.steps[name]
        if told.waiting.get(name) == mark_of(state):
            continue
        if len(found) == AT_ONCE:
            break
        found.append(Waiting(
            mark=mark_of(state), step_id=name, kind=kind_of(state), digest=state.digest, since=state.changes[-1].time,
        ))  # fmt: skip
    return found


def mark_of(state: StepState) -> str:
    """Which question of its step is asked."""
    return f"{state.changes[-1].seq}-{state.digest[:16]}"


def kind_of(state: StepState) -> Kind:
    """What is asked of a step that waits."""
    if state.awaiting == "answer":
        return "question"
    proposed = next(iter(state.proposal or {}), "")
    return "budget" if proposed == "budget" else "recovery" if proposed else "approval"


def remarks_in(run: Run, *, budget: bool) -> list[Remark]:
    """The log entries about overrides, and about the `budget`, that were not handed over yet.

    Where a person is asked about the budget, that is enough.
    """
    told = run.part(Told).budget
    entries = [each for each in run.log if each.seq > told and (each.kind is LogKind.BUDGET or each.code == OVERRIDDEN)]
    if entries and budget:
        budget = not any(state.proposal and "budget" in state.proposal for state in run.steps.values())
    return [
        Remark(seq=each.seq, text=each.text, time=each.time, overridden=each.code == OVERRIDDEN)
        for each in entries
        if budget or each.code == OVERRIDDEN
    ]


def with_news(run: Run, awaiting: Sequence[str], empty: News) -> News | None:
    """What is new in a run that its rules want to be said, added to news without any; None if nothing is new."""
    wanted = {event for rule in empty.rules for event in rule.on}
    # A question about a budget is for those who want to know of either.
    waiting = waiting_in(run, awaiting) if wanted & set(WAITING) else []
    if "awaiting" not in wanted:
        waiting = [each for each in waiting if each.kind == "budget"]
    remarks = remarks_in(run, budget="budget" in wanted)
    is_end = run.status in ENDED and not run.part(Told).ended and run.status.value in wanted
    if not waiting and not remarks and not is_end:
        return None
    end = {"ended": run.status.value, "reason": how_it_ended(run)} if is_end else {}
    return empty.model_copy(update={"waiting": waiting, "remarks": remarks, **end})


def how_it_ended(run: Run) -> str:
    """Why an ended plan stopped, how many of its steps did what, and the first failures with their codes."""
    counted = Counter(state.status.value for state in run.steps.values())
    lines = [run.stopped[:500]] if run.stopped else []
    lines.append("steps: " + ", ".join(f"{number} {status}" for status, number in counted.items()))
    unanswered = [name[:200] for name, state in run.steps.items() if state.is_unanswered]
    lines += [f"not answered in time: {', '.join(unanswered[:FAILURES])}"] if unanswered else []
    failed = (name for name, state in run.steps.items() if state.status is Status.FAILED)
    results = [(name, run.steps[name].result) for name in islice(failed, FAILURES)]
    lines += [f"failed: {name[:200]}: {each.code}: {folded(each.error or '')[:300]}" for name, each in results if each]
    return "\n".join(lines)


def handed_over(run: Run, news: News, awaiting: Iterable[str]) -> None:
    """Note in the run that the news is on its way; forget what waits no longer."""
    asked = {each.step_id: each.mark for each in news.waiting}
    still = dict.fromkeys(awaiting)
    told = run.part(Told)
    kept = {name: mark for name, mark in told.waiting.items() if name in still}
    if run.status is PlanStatus.REVIEW and "" in told.waiting:
        kept[""] = told.waiting[""]
    told.waiting = kept | asked
    told.budget = max([told.budget, *(each.seq for each in news.remarks)])
    told.ended = told.ended or news.ended is not None


def _for_child(run: Run, step: Step, plan: Plan | None) -> MoreRules | None:  # noqa: ARG001
    rules = effective(run, is_child=run.parent is not None)
    return MoreRules(rules=rules) if rules else None


RULES = Rules("notify", for_child=_for_child)

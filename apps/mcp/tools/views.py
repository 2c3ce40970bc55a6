"""What the tools about one plan answer: where it stands, one of its steps, what it awaits, what came of it; bounded."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from plansurvive.apps.mcp.common.where import Where, where
from plansurvive.client import runs
from plansurvive.client.children.naming import asking, the_step
from plansurvive.client.feature import views_of_features
from plansurvive.client.requests.connected import Connected
from plansurvive.client.verbs.pending import Pending
from plansurvive.plans.model import Value
from plansurvive.plans.run import ENDED, PlanStatus, Status
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models import BriefStep, BriefView, PlanView, ResultView, StepView
from plansurvive.plans.views.models.card import wanted
from plansurvive.plans.views.steps.row import row
from plansurvive.plans.views.summary import Failure, Summary, why_failed

PlanId = Annotated[str, Field(min_length=1, max_length=300, description="Id of the plan.")]
StepId = Annotated[
    str, Field(min_length=1, max_length=1_000, description="Id of the step; of an item: resize[cat.png].")
]

MAX_STEPS = 100
"""Steps that are listed at once."""
MAX_CALL = 1_000
"""Characters of a call in a line of text."""
MAX_VALUE = 30_000
"""Characters of the JSON of one value; a longer one is cut."""
MAX_FILES = 200


class StepShown(Value):
    """One step."""

    id: str
    tool: str
    description: str = ""
    status: Status
    word: str = Field(
        default="", description="The same in words: `awaiting approval`, `denied`, `unanswered`, `permanently blocked`."
    )
    awaiting: str | None = Field(
        default=None, description="approval, answer: of a person; event; recovery: of the LLM."
    )


class Result(Value):
    """A value, of a step or of the plan."""

    ok: bool = True
    value: Any = Field(default=None, description="The value, or the beginning of its JSON as text if `cut` says so.")
    cut: bool = False
    length: int | None = Field(default=None, description="Of a cut value, its length in characters.")
    code: str | None = Field(default=None, description="Stable code of the error.")
    error: str | None = None

    @classmethod
    def of(cls, result: ResultView) -> Result:
        """A result, its value cut if it is long."""
        text = json.dumps(result.value, ensure_ascii=False, default=str)
        is_long = len(text) > MAX_VALUE
        return cls(
            ok=result.ok, value=text[:MAX_VALUE] if is_long else result.value, code=result.code,
            cut=result.cut or is_long or result.large is not None, error=(result.error or "")[:4_000] or None,
            length=result.length or (len(text) if is_long else None),
        )  # fmt: skip


class StepDetail(StepShown):
    """One step with its arguments and its result."""

    args: dict[str, Any] = Field(default_factory=dict)
    depends_on: list[str] = Field(default_factory=list)
    reason: str = Field(default="", description="Why it is permanently blocked, or was skipped.")
    result: Result | None = None
    files: list[str] = Field(default_factory=list, description="Files it created or changed.")
    warnings: list[str] = Field(default_factory=list)


class Outcome(Value):
    """What came of a plan that has ended."""

    value: Result | None = Field(default=None, description="Its `outputs`.")
    failed: list[Failure] = Field(default_factory=list)
    stopped: str = ""
    files_written: list[str] = Field(default_factory=list)


class Awaited(Value):
    """A decision that a person has to make."""

    plan_id: str = Field(description="The plan that asks; a child plan has its own id.")
    step_id: str
    kind: str = Field(description="approval, recovery, budget, answer.")
    tool: str
    description: str = ""
    args: dict[str, Any] = Field(default_factory=dict)
    reasons: list[str] = Field(default_factory=list, description="Why it asks.")
    unusual: list[str] = Field(default_factory=list, description="What a reader could miss in its texts.")
    is_whole: bool = Field(default=True, description="False: `args` are cut, or insert stored values; no digest then.")
    digest: str = Field(default="", description="Digest of the whole call that is decided about.")
    version: int = 1
    since: datetime | None = None
    deadline: datetime | None = None
    more: int = Field(default=0, description="Further decisions about other items of the same step.")

    @property
    def text(self) -> str:
        """A line with the call, for clients that show a model only the text."""
        why = f" ({'; '.join(map(line, self.reasons))})" if self.reasons else ""
        call = line(json.dumps(self.args, ensure_ascii=False, default=str))
        shown = call if len(call) <= MAX_CALL else f"{call[:MAX_CALL]}…"
        what = wanted(self.kind, views=views_of_features())
        return f"{self.plan_id} {line(self.step_id)}: awaiting {what} ({self.tool}){why}: {shown}"

    @classmethod
    def of(cls, item: Pending) -> Awaited:
        """A pending decision. Of a call that is too large to show there is no digest: it cannot be named unread.

        Of such arguments, `cut` has the beginning of their JSON.
        """
        found = cls.model_validate(item.model_dump(include=set(cls.model_fields) - {"is_whole"}, by_alias=False))
        args = _bounded(found.args)
        if args is found.args and not item.large:
            return found
        return found.model_copy(update={"args": args, "is_whole": False, "digest": ""})


class Shown(Value):
    """A plan: where it stands."""

    plan_id: str
    title: str = ""
    status: PlanStatus
    has_ended: bool
    version: int = 1
    seq: int = Field(default=0, description="Number of its last event: `since` of plan_show and plan_events.")
    counts: dict[str, int] = Field(default_factory=dict, description="Steps by status; `total`.")
    steps: list[StepShown] = Field(default_factory=list)
    next: int | None = Field(default=None, description="`fromStep` for the steps after these.")
    step: StepDetail | None = Field(default=None, description="The step that was asked for.")
    awaits: list[str] = Field(
        default_factory=list, description="Steps, child plans and agents that await a person; plan_pending has more."
    )
    problems: list[str] = Field(default_factory=list, description="What keeps a draft from starting.")
    warnings: list[str] = Field(default_factory=list, description="What its author should know of what was started.")
    outcome: Outcome | None = Field(default=None, description="Once it has ended.")
    outputs: dict[str, Any] | None = Field(
        default=None, description="Its outputs, whole, where a call waited for them."
    )
    decide: Where = Field(description="Where a person sees the plan, and decides.")


async def shown(here: Connected, plan: str, from_step: int = 0, step_id: str | None = None) -> tuple[Shown, str]:
    """Where a plan stands, and the same as text. Raises as `runs.show`, and Refused UNKNOWN_STEP."""
    brief = await runs.brief(here.client, plan)
    whole = await runs.show(here.client, plan) if brief.status in ENDED or step_id or _is_draft(brief) else None
    found = _of(brief, where(here, brief.id or plan), from_step)
    if whole is not None:
        found = found.model_copy(
            update={
                "step": await _detail(here, plan, whole, step_id) if step_id else None,
                "outcome": _outcome(whole, await runs.summary(here.client, plan)) if brief.status in ENDED else None,
                "problems": [problem.text for problem in whole.problems[:MAX_STEPS]],
            }
        )
    return found, text_of(found)


def text_of(found: Shown) -> str:
    """A plan as a model reads it."""
    counted = ", ".join(f"{number} {name}" for name, number in found.counts.items() if name != "total" and number)
    rows = [f"plan {found.plan_id} · {found.status} · {counted or 'no steps yet'}", *found.warnings]
    rows += [f"{each.word:<10} {each.id} ({each.tool})" for each in found.steps]
    rows += [f"… more steps: fromStep {found.next}"] if found.next else []
    rows += [f"problem: {each}" for each in found.problems]
    if found.step is not None:
        rows.append(json.dumps(found.step.model_dump(mode="json", exclude_none=True), ensure_ascii=False)[:10_000])
    if (end := found.outcome) is not None:
        rows += [f"failed: {each.step_id}: {each.code or 'no code'}: {each.error}" for each in end.failed[:20]]
        rows += [f"stopped: {end.stopped}"] if end.stopped else []
        rows.append(
            f"value: {json.dumps(end.value.value, ensure_ascii=False)[:5_000]}"
            if end.value
            else "What a step returned: plan_show with its stepId."
        )
    if found.status is PlanStatus.DRAFT:
        rows.append("It is being written or checked, and awaits no person; plan_show with `wait` follows it.")
    if found.awaits or found.status is PlanStatus.REVIEW:
        what = f"Awaiting a person: {', '.join(found.awaits[:10])}." if found.awaits else "The plan is in review."
        rows.append(f"{what} {found.decide.text}")
    return "\n".join(rows)


def _of(view: BriefView, place: Where, from_step: int) -> Shown:
    listed = view.steps[from_step : from_step + MAX_STEPS]
    place = place.in_review(view.id) if view.status is PlanStatus.REVIEW else place
    end = from_step + len(listed)
    return Shown(
        plan_id=view.id, title=view.title[:1_000], status=view.status, has_ended=view.status in ENDED,
        version=view.version, seq=view.seq, counts=view.counts, steps=[_step(each) for each in listed],
        next=end if end < len(view.steps) else None,
        awaits=awaited(view)[:MAX_STEPS], decide=place,
    )  # fmt: skip


def awaited(view: BriefView) -> list[str]:
    """What awaits a person: steps, and plans and agents below it."""
    return list(dict.fromkeys([*(each.step_id for each in view.pending), *asking(view.steps)]))


def _is_draft(view: BriefView) -> bool:
    return view.status in (PlanStatus.DRAFT, PlanStatus.REVIEW)


def _step(step: BriefStep | StepView) -> StepShown:
    return StepShown(
        id=step.id, tool=step.tool, description=step.description[:300], status=step.status, word=row(step).word,
        awaiting=step.awaiting,
    )  # fmt: skip


async def _detail(here: Connected, plan: str, whole: PlanView, step_id: str) -> StepDetail:
    """One step, also inside a block or loop."""
    found = whole.step(step_id)
    if found is not None:
        files = whole.step_files.get(str(found.order), [])
        return StepDetail(
            **dict(_step(found)), args=_bounded(found.args), depends_on=found.depends_on, reason=row(found).reason,
            result=Result.of(found.result) if found.result else None, files=files[:MAX_FILES], warnings=found.warnings,
        )  # fmt: skip
    inner = await the_step(here.client, plan, step_id)
    return StepDetail(
        **dict(_step(inner)), args=_bounded(inner.args or {}), depends_on=inner.needs, reason=row(inner).reason,
        result=Result.of(inner.result) if inner.result else None, files=inner.files[:MAX_FILES],
        warnings=inner.warnings,
    )  # fmt: skip


def _bounded(args: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(args, ensure_ascii=False, default=str)
    return args if len(text) <= MAX_VALUE else {"cut": text[:MAX_VALUE]}


def _outcome(whole: PlanView, summary: Summary) -> Outcome:
    """What came of it; each error is said once: of a loop whose items are listed, how many of them failed."""
    failed = [each.model_copy(update={"error": why_failed(summary, each)}) for each in summary.failed]
    written = {name: None for names in whole.step_files.values() for name in names}
    value = Result.of(whole.value) if whole.value else None
    return Outcome(
        value=value, failed=failed[:MAX_STEPS], stopped=whole.stopped[:2_000], files_written=list(written)[:MAX_FILES]
    )

"""What the policy of this moment says of a call, for the layer around attempts and for steps without a tool's activity.

In this order: the file, which may be unreadable; its rules; the judges of rules that ask, unless a person has decided;
the rules once more without the asks that judges have settled; what people have decided.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from plansurvive.features.policy.consent import Standing, standing
from plansurvive.features.policy.current import UNREADABLE, Current
from plansurvive.features.policy.judging import Judged, Verdict, judge
from plansurvive.features.policy.llm_judge import LlmJudge
from plansurvive.features.policy.model import JudgedCall, Judgement, Ruling, Spoken, Term, Terms
from plansurvive.features.policy.policy_file import terms_of
from plansurvive.features.policy.rule import Policy
from plansurvive.plans.errors import ToolError
from plansurvive.plans.model.tool_spec import needs_approval
from plansurvive.plans.text.spans import in_words

DENIED = "POLICY_DENIED"
ASKS = "APPROVAL_REQUIRED"
EXPIRED = "APPROVAL_EXPIRED"
UNKNOWN = Spoken()
"""The author of a call of which none is known: as every plan has one, it could be anybody."""


class Rulings:
    """Says of calls what the policy says of them."""

    def __init__(self, current: Current, llm: LlmJudge | None = None) -> None:
        """`llm`: None where no judge can be asked; then their rules ask."""
        self._current, self._llm = current, llm

    def now(self) -> tuple[Policy | None, str]:
        """The policy of this moment, or None; and why it cannot be read, if it cannot."""
        return self._current.now()

    async def of(
        self,
        call: Judged,
        said: JudgedCall | None,
        *,
        key: str = "",
        approved: bool = False,
        again: bool = False,
        now: tuple[Policy | None, str] | None = None,
    ) -> tuple[Ruling, ToolError | None]:
        """What the policy says, and the error with which a call that may not be made ends.

        `key`: of the call; `said`: what its plan says of it; `again`: an attempt was made before; `now`: the policy, if
        the caller has looked. Raises Waits.
        """
        policy, problem = now or self.now()
        judgements = list[Judgement]()
        if problem:
            verdict = _unreadable(f"{UNREADABLE}: {problem}; every call asks until that is corrected", policy, call)
        elif policy is None:
            verdict = Verdict("")
        else:
            verdict = judge(policy, call)
            if verdict.judges and not (said and said.decided):
                judgements, verdict = await self._judged(policy, call, verdict, said, key)
        wants = _wanted(verdict, said, approved=approved)
        if wants and verdict.decide != "ask":
            verdict = Verdict("ask", (), "the plan itself says who must approve it")
        if not verdict.decide:
            asks = said is not None and said.asks and not approved
            text = needs_approval(call.tool)
            return Ruling(), ToolError(ASKS, text) if asks else None
        spans = [each for each in (verdict.expires, *(each.expires for each in wants)) if each is not None]
        verdict = replace(verdict, expires=min(spans, default=None))
        terms = terms_of(policy or Policy(), verdict.rules, wants) if verdict.decide == "ask" else None
        unsettled = _unsettled(verdict, said, terms, again=again) if verdict.decide == "ask" else ""
        ruling = Ruling(
            decide=verdict.decide,
            rules=list(verdict.rules),
            hash=policy.hash if policy else "",
            reason=(unsettled or _reason(verdict, said))[:2_000],
            judged=judgements,
            terms=terms if unsettled else None,
        )
        if verdict.decide == "deny":
            return ruling, ToolError(DENIED, verdict.reason)
        if unsettled:
            return ruling, ToolError(ASKS, unsettled)
        return ruling, None

    async def _judged(
        self, policy: Policy, call: Judged, verdict: Verdict, said: JudgedCall | None, key: str
    ) -> tuple[list[Judgement], Verdict]:
        """What the judges of a verdict's rules say, and the verdict without the asks that they settle."""
        llm = self._llm
        why = _unasked(call, verdict, said)
        if llm is None or why:
            why = why or "this worker cannot ask an LLM"
            return [], replace(verdict, reason=f"{verdict.reason}; its judge was not asked: {why}")
        found = list[Judgement]()
        for rule in verdict.judges:
            found.append(await llm.judged(rule, call.tool, call.args, key))
            if found[-1].decide == "ask":  # a person is asked anyway
                break
        settled = [each.rule for each in found if each.decide == "allow"]
        after = judge(policy, call, settled)
        said_so = "; ".join(f"the judge of rule '{each.rule}' says {each.decide}: {each.reason}" for each in found)
        if after.decide == "allow":
            by = next(each for each in found if each.decide == "allow")
            return found, replace(after, reason=f"allowed by the judge under rule '{by.rule}': {by.reason}")
        return found, replace(after, reason=f"{after.reason}; {said_so}")


def _wanted(verdict: Verdict, said: JudgedCall | None, *, approved: bool) -> list[Term]:
    """Whom the plan itself wants to approve a call: always, or where it asks for another reason."""
    if said is None or verdict.decide == "deny":
        return []
    asks = verdict.decide == "ask" or bool(said.decided) or (said.asks and not approved)
    return said.wants if said.must or asks else []


def _unreadable(why: str, policy: Policy | None, call: Judged) -> Verdict:
    """What counts while the file cannot be read: never less than the last policy that could be says."""
    last = judge(policy, call) if policy is not None else Verdict("")
    if last.decide == "deny":
        return last
    if last.decide == "ask":
        return replace(last, reason=f"{why}; {last.reason}", judges=())
    return Verdict("ask", (), why)


def _unasked(call: Judged, verdict: Verdict, said: JudgedCall | None) -> str:
    """Why the judges of a verdict are not asked; empty if they are."""
    if len(verdict.judges) < len(verdict.rules):
        return "another rule asks as well"
    if call.unknown:
        return "not all arguments are known here"
    if said is not None and said.spent:
        return "the plan's LLM budget is spent"
    return ""


def _reason(verdict: Verdict, said: JudgedCall | None) -> str:
    """Why a call is made or denied, with everybody who has approved it: a step shows the last one's decision alone."""
    if verdict.decide != "ask" or said is None:
        return verdict.reason
    return f"{verdict.reason}; approved by {', '.join(each.by or 'somebody' for each in said.decided[:10])}"


def _why_not(found: Standing, count: int) -> list[str]:
    """Why those do not count that have decided. How far the decision is, the plan says itself."""
    return list(dict.fromkeys(why for place in range(count) if (why := found.why_not(place))))[:5]


def _unsettled(verdict: Verdict, said: JudgedCall | None, terms: Terms | None, *, again: bool) -> str:
    """Why no decision of a person answers the policy; empty if one does. A call uses it up when it is first tried."""
    if said is None or not said.decided:
        return verdict.reason
    if terms is not None:
        # Once more than when they were collected: by the policy, the keys and the time of this moment.
        found = standing(terms, said.decided, said.authors or [UNKNOWN], None if again else datetime.now(UTC))
        if not found.is_complete:
            return "; ".join([verdict.reason, *_why_not(found, len(said.decided))])
    if verdict.expires is None or again:
        return ""
    age = (datetime.now(UTC) - max(each.time for each in said.decided)).total_seconds()
    if age <= verdict.expires:
        return ""
    return (
        f"{EXPIRED}: the decision is {in_words(age)} old, and counts for {in_words(verdict.expires)}; {verdict.reason}"
    )

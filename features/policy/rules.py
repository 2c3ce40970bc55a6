"""What a plan tells the policy of its worker about a call, and what follows from what the policy says.

The workflow reads no rule. It learns from an attempt that the policy asks, and from then on nothing but a person lets
the step start: no waiver, no remembered approval, no time limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import ValidationError

from plansurvive.features.policy.consent import MAY_NOT, Standing, standing, who_may
from plansurvive.features.policy.model import (
    Asked,
    Consents,
    Decided,
    JudgedCall,
    Origin,
    People,
    Ruling,
    Spoken,
    Term,
)
from plansurvive.plans.activity_io import Call, Return
from plansurvive.plans.change_log import MAX_REVISIONS
from plansurvive.plans.errors import Refused
from plansurvive.plans.model import ApprovalRule, Budget, Plan, Step
from plansurvive.plans.model.parts import Parted
from plansurvive.plans.run import Decision, Result, Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.run.step_call import carries
from plansurvive.plans.signature import ABOVE, PAGE

ASKS = "APPROVAL_REQUIRED"
_BY_LLM: tuple[list[str], ...] = ([], ["draft"], ["recovery"])
"""Operations of revisions that no person has asked for."""


def origin_of(run: Run, step: Step) -> Literal["", "person", "llm", "agent"]:
    """Who chose a step's call; empty if it is not known: nobody says who has read the plan."""
    above = run.options.part(Origin).origin if Origin.feature in run.options.parts else ""
    if run.literal or above == "agent":
        return "agent"
    if run.request or above or run.steps[step.id].mended or any(each.by == "llm" for each in run.revisions):
        return "llm"
    return "person" if run.options.waivers else ""


def spoken(run: Run, by: str, signed: str, *, verified: bool) -> dict[str, Any]:
    """Somebody who has spoken to the run, with the key that the signature was good for."""
    keys = run.facts.known_part(People) or People()
    key = keys.pages.get(signed.removeprefix(PAGE), "") if signed.startswith(PAGE) else keys.people.get(signed, "")
    return {"by": by, "signed": signed, "verified": verified, "key": key}


def authors_of(run: Run) -> list[Spoken]:
    """Who started the plan, or edited it, and the authors of what it runs for or continues; each once.

    Whoever changes one step may change what another one is given: an edit makes an author of every step.
    """
    above = run.options.known_part(Origin) or Origin()
    found = list(above.authors)
    if run.starter != ABOVE:
        by = run.options.continued_by if run.resumes else ""
        found.append(Spoken(**spoken(run, by or run.options.by, run.starter, verified=run.options.vouched is True)))
    found += [
        Spoken(**spoken(run, each.by, each.signed, verified=each.verified))
        for each in run.revisions
        if each.ops not in _BY_LLM
    ]
    if len(run.revisions) >= MAX_REVISIONS:
        found.append(Spoken(by="earlier editors"))
    return list(dict.fromkeys(found))


def ruling_of(parted: Parted) -> Ruling | None:
    """What the policy said of an attempt; None if nothing, or anything else than our workers say."""
    if Ruling.feature not in parted.parts:
        return None
    try:
        return parted.part(Ruling)
    except ValidationError:  # of an activity that was completed by hand
        return None


def _for_child(run: Run, step: Step, plan: Plan | None) -> Origin | None:  # noqa: ARG001
    if not _is_judged(run):
        return None
    origin = origin_of(run, step)
    return Origin(origin=origin if origin in ("llm", "agent") else "", authors=authors_of(run)[:200])


def _for_next(run: Run, rerun: bool) -> Origin | None:  # noqa: ARG001
    if not _is_judged(run):
        return None
    before = run.options.known_part(Origin) or Origin()
    return Origin(origin=before.origin, authors=authors_of(run)[:200])


def _is_judged(run: Run) -> bool:
    return any(spec.judged for spec in run.facts.tools.values())


def terms_of_plan(run: Run, step: Step) -> list[Term]:
    """Whom the plan itself wants to approve a step: as the step says, and as the plan's defaults do."""
    found = (step.approval, run.plan.defaults.approval)
    return [term_of(each) for each in found if each is not None and (each.names_people or each.expires)]


def term_of(rule: ApprovalRule) -> Term:
    """What a plan says of who must approve."""
    expires = None if rule.expires is None else int(rule.expires)
    return Term(rule="", by=rule.by, count=rule.count, not_author=rule.not_author, expires=expires)


def _extend(run: Run, step: Step, call: Call) -> JudgedCall | None:
    spec, wants = run.facts.tools[step.tool], terms_of_plan(run, step)
    if not spec.judged and step.id not in run.unwaived and not wants:
        return None
    asked = _asked(run).get(step.id)
    decided = _approvals(run, asked, run.decisions.get(step.id))
    return JudgedCall(
        asks=spec.judged and not call.approved and spec.asks_by_default(call.args, carries(run, step)),
        names=[name for name in (run.plan.title, run.plan.id) if name],
        starter=run.options.by,
        started=_starter(run),
        origin=origin_of(run, step),
        spent=_is_spent(run),
        decided=decided,
        wants=wants,
        must=step.approval is not None and step.approval.names_people,
        # Also before a rule has asked: an approval that was made earlier counts only if it is no author's.
        authors=authors_of(run)[:200] if asked or decided else [],
    )


def _starter(run: Run) -> Spoken | None:
    """Who started the plan, if a key proves it. That of a run which continues another one proves who continues it."""
    if not run.starter or run.starter == ABOVE or run.resumes:
        return None
    return Spoken(**spoken(run, run.options.by, run.starter, verified=run.options.vouched is True))


def _asked(run: Run) -> dict[str, Asked]:
    return consents.steps if (consents := run.known_part(Consents)) is not None else {}


def _approval(run: Run, decision: Decision) -> Decided | None:
    """A decision as an approval of a person; None if it is anything else."""
    if not decision.approved or decision.remembered or decision.source == "timeout":
        return None
    who = spoken(run, decision.by, decision.signed, verified=decision.verified)
    return Decided(**who, time=decision.time, digest=decision.digest, override=decision.override)


def _approvals(run: Run, asked: Asked | None, decision: Decision | None) -> list[Decided]:
    """All approvals of the call that a decision is about, the decision's own last."""
    own = _approval(run, decision) if decision is not None else None
    if own is None:
        return []
    others = [each for each in asked.decided if each.digest == own.digest != "" and each != own] if asked else []
    return [*others, own]


def standing_of(run: Run, step: Step, *more: Decided) -> Standing | None:
    """How far the approvals of the call are that the step asks about; None if it does not matter who approves."""
    asked = _asked(run).get(step.id)
    if asked is None:
        return None
    digest = more[0].digest if more else run.steps[step.id].digest
    votes = [each for each in asked.decided if each.digest == digest != ""]
    return standing(asked.terms, [*votes, *more], authors_of(run), more[0].time if more else None)


def people_of(run: Run, step: Step, term: Term) -> dict[str, str]:
    """By name and login, whether the people whom a rule is about may approve the call; else why not."""
    asked = _asked(run).get(step.id)
    if asked is None or not term.demands:
        return {}
    state = run.steps[step.id]
    votes = [each for each in asked.decided if each.digest == state.digest != ""]
    found = who_may(asked.terms, term, votes, authors_of(run), state.changes[-1].time)
    known = asked.terms.people
    return found | {login: why for name, why in found.items() if name in known for login in known[name].logins}


def logins_of(run: Run, step: Step, names: Sequence[str]) -> dict[str, list[str]]:
    """By person of the policy among these names, the logins by which a page knows them."""
    asked = _asked(run).get(step.id)
    people = asked.terms.people if asked else {}
    return {name: people[name].logins for name in names if name in people and people[name].logins}


def _decided(run: Run, step: Step, decision: Decision) -> Decision:
    """The decision with how many more people must approve. Raises Refused for one that counts for nothing."""
    asked, own = _asked(run).get(step.id), _approval(run, decision)
    if decision.override and asked is None:
        text = "no rule asks for certain people to approve it now, so there is nothing to override; approve it"
        raise Refused(f"step '{step.id}': {text}", MAY_NOT)
    if asked is None or own is None:
        return decision
    found = standing_of(run, step, own)
    if found is None:
        return decision
    place = len([each for each in asked.decided if each.digest == own.digest != ""])
    if why := found.why_not_alone(place) if decision.override else found.why_not(place):
        code, _, text = why.partition(": ")
        raise Refused(f"step '{step.id}': {text}; {found.text}", code)
    if decision.changed_args and any(each.term.count > 1 or each.term.not_author for each in found.rules):
        text = "others must decide about these arguments: change them with `plan edit`, and everybody is asked again"
        raise Refused(f"step '{step.id}': {text}", "INVALID_ARGS")
    return decision.model_copy(update={"needed": found.needed, "missing": found.missing})


def _collected(run: Run, step: Step, decision: Decision) -> None:
    asked = _asked(run).get(step.id)
    if asked is None:
        return
    votes = _approvals(run, asked, decision)  # none after a denial: everybody is asked again, if anybody is
    run.part(Consents).steps[step.id] = asked.model_copy(update={"decided": votes[-50:]})


def _settled(run: Run, step: Step, returned: Return) -> Ruling | None:
    ruling = ruling_of(returned)
    _count(run, step, ruling)
    return ruling


def _failed(run: Run, step: Step, left: Return, failure: Result, now: datetime) -> bool:
    """From now on only a person lets the step start. True: what was decided is no person's decision of this call."""
    ruling = ruling_of(left)
    _count(run, step, ruling)
    if ruling is None or ruling.decide != "ask" or failure.code != ASKS:
        return False
    run.unwaived[step.id] = ruling.reason[:500]
    before, decision = _asked(run).get(step.id), run.decisions.get(step.id)
    if ruling.terms is None:
        if before is not None:
            del run.part(Consents).steps[step.id]
    else:
        # What still counts is not asked for once more. What does not has expired, or is nobody's.
        votes = _approvals(run, before, decision)
        found = standing(ruling.terms, votes, authors_of(run), now)
        kept = [each for place, each in enumerate(votes) if each.digest and not found.why_not(place)]
        run.part(Consents).steps[step.id] = Asked(terms=ruling.terms, decided=kept)
    return decision is not None


def _count(run: Run, step: Step, ruling: Ruling | None) -> None:
    """What the judges of rules were asked for a step is spent by its plan, as other requests are."""
    for each in ruling.judged if ruling is not None else ():
        run.llm_seconds += each.seconds
        if each.usage.calls:
            run.ledger = run.ledger.plus(each.usage, model=each.model, step_id=step.id, seconds=each.seconds)


def _is_spent(run: Run) -> bool:
    """Whether the plan's own budget has no room for another request; nobody is asked to extend it for a judge."""
    budget, spent = run.plan.budget or Budget(), run.ledger.total
    limits = (
        (budget.calls, spent.calls),
        (budget.tokens, spent.total_tokens),
        (budget.seconds, run.llm_seconds),
        (budget.cost, spent.highest_cost[0]),
    )
    return any(limit is not None and used >= limit for limit, used in limits)


RULES = Rules(
    "policy", for_next=_for_next, for_child=_for_child, extend=_extend, settled=_settled, failed=_failed,
    may_decide=_decided, decided=_collected,
)  # fmt: skip

"""Whether a run may send its next LLM request, as its budget allows: warn, then ask a person, then stop.

`decide` compares what is spent with a budget; `judge` also counts the requests under way, so that steps side by side
exceed a limit by one request at most. A plan without a budget has the default one, for its own requests only: its
agents and child plans ask for theirs once there is a budget.
"""

from __future__ import annotations

from plansurvive.features.budget.model import Final, granted, may_ask
from plansurvive.plans.model import Budget, Plan
from plansurvive.plans.run import Run
from plansurvive.plans.run.feature import Rules
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.usage import Permission, Position, Usage


def decide(budget: Budget, spent: Usage, seconds: float = 0.0, plan: str = "") -> Permission:
    """Judge the next LLM request by the limit with the largest share spent. `seconds`: LLM time so far."""
    limits = (
        ("tokens", budget.tokens, float(spent.total_tokens)),
        ("calls", budget.calls, float(spent.calls)),
        ("seconds", budget.seconds, seconds),
        ("cost", budget.cost, spent.highest_cost[0]),
    )
    shares = [(used / limit, name, used, limit) for name, limit, used in limits if limit is not None]
    share, name, used, limit = max(shares, default=(0.0, "", 0.0, 0.0))
    if share < budget.warn_at:
        return Permission()
    amounts = f"{used:,.0f} of {limit:,.0f} {name}"
    if name == "cost":
        amounts = f"{used:,.10g} of {limit:,.10g} {line(spent.highest_cost[1]) or name}"
    reason = f"{amounts} of the LLM budget are spent"
    if share < 1:
        return Permission(verdict="warn", reason=reason)
    remedy = f"raise it with: plan resume {plan} --set budget.{name}=N"
    return Permission(verdict="ask" if budget.ask else "stop", reason=reason, remedy=remedy)


def judge(budget: Budget, position: Position, plan: str = "") -> Permission:
    """Judge the next request while others are under way, so that all together exceed a limit by one request at most.

    A call that was granted counts as spent. Tokens and seconds of a request are known only when it ends: another one
    may start beside it while what the others are expected to need stays below the limit; else it waits for them.
    """
    counted = position.spent.model_copy(update={"calls": position.spent.calls + position.uncounted})
    permission = decide(budget, counted, position.seconds, plan)
    if permission.verdict in ("ask", "stop") or not position.sizes:
        return permission
    tokens = position.spent.total_tokens + sum(position.sizes)
    if budget.tokens is not None and tokens >= budget.tokens:
        return Permission(verdict="wait", reason="requests under way may use up the tokens of the LLM budget")
    seconds = position.seconds + position.longest * len(position.sizes)
    if budget.seconds is not None and (not position.longest or seconds >= budget.seconds):
        return Permission(verdict="wait", reason="requests under way may use up the seconds of the LLM budget")
    return permission


def extended(budget: Budget, position: Position) -> Budget:
    """The budget after a person extended it: every limit raised by half of itself, and beyond what is spent."""
    more = granted(budget)
    calls, tokens = position.spent.calls + position.uncounted, position.spent.total_tokens
    cost = position.spent.highest_cost[0] + (budget.cost or 0) / 2
    return more.model_copy(
        update={
            "calls": more.calls if more.calls is None else max(more.calls, calls + 1),
            "tokens": more.tokens if more.tokens is None else max(more.tokens, tokens + (budget.tokens or 0) // 2 + 1),
            "seconds": more.seconds if more.seconds is None else max(more.seconds, position.seconds * 1.5),
            "cost": more.cost if more.cost is None else max(more.cost, cost),
        }
    )


def extended_for(run: Run) -> Budget:
    """The budget of a run after a person extended it for what its agents and child plans have under way."""
    return extended(run.plan.budget or Budget(), _position(run))


def raised(run: Run) -> str:
    """What an approval makes of the limits, in words: `calls 50 -> 76`."""
    budget, more = run.plan.budget or Budget(), extended_for(run)
    pairs = [(name, getattr(budget, name), getattr(more, name)) for name in ("tokens", "calls", "seconds", "cost")]
    return ", ".join(f"{name} {old:,.10g} -> {new:,.10g}" for name, old, new in pairs if old is not None)


def _position(run: Run) -> Position:
    return run.ledger.position(run.llm_calls, run.llm_seconds)


def _permit(run: Run, own: bool) -> Permission | None:
    budget = run.plan.budget
    if budget is None and not own:
        return None
    limits = (budget or Budget()).model_copy(update={"ask": may_ask(run)})
    if budget is None:
        return decide(limits, Usage(calls=run.llm_calls), run.llm_seconds, run.plan.id or "")
    return judge(limits, _position(run), run.plan.id or "")


def _edited(run: Run, before: Plan) -> None:
    """Let a person be asked again once somebody has edited the limits."""
    if run.plan.budget != before.budget:
        run.part(Final).refused_for = ""


RULES = Rules("budget", permit=_permit, edited=_edited)

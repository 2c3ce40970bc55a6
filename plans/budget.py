"""LLM usage and budget: whether another LLM request may be made (warn, then ask a person, then stop).

`Usage` is additive; a `Ledger` keeps totals by step and by model for one run. `decide` compares them with a `Budget`
before the next request. It never reads a clock: the seconds spent are passed in.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plans.model import Budget, Value

__all__ = ["OVERRUN_CODE", "Budget", "Judgement", "Ledger", "Usage", "Verdict", "decide"]

Verdict = Literal["ok", "warn", "ask", "stop"]
OVERRUN_CODE = "LLM_BUDGET"
"""Error code of a step or run that ended because its budget was exhausted."""


class Usage(Value):
    """Tokens and number of one or more LLM requests."""

    calls: int = Field(default=0, ge=0, description="Requests the endpoint answered.")
    prompt_tokens: int = Field(default=0, ge=0, description="Tokens of the messages.")
    completion_tokens: int = Field(default=0, ge=0, description="Tokens of the answers.")
    total_tokens: int = Field(default=0, ge=0, description="All tokens, as counted by the endpoint.")

    def plus(self, other: Usage) -> Usage:
        """The sum of both."""
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
        )


class Ledger(Value):
    """Usage of one run by step and by model. Requests not made for a step (planning) are under the empty step id."""

    by_step: dict[str, Usage] = Field(default_factory=dict)
    by_model: dict[str, Usage] = Field(default_factory=dict)

    @property
    def total(self) -> Usage:
        """Usage of the whole run."""
        total = Usage()
        for usage in self.by_step.values():
            total = total.plus(usage)
        return total

    def plus(self, usage: Usage, *, model: str, step_id: str = "") -> Ledger:
        """A new ledger with `usage` added."""
        steps = self.by_step | {step_id: self.by_step.get(step_id, Usage()).plus(usage)}
        models = self.by_model | {model: self.by_model.get(model, Usage()).plus(usage)}
        return Ledger(by_step=steps, by_model=models)


class Judgement(Value):
    """Whether the next LLM request may be made, and why not."""

    verdict: Verdict = "ok"
    reason: str = Field(default="", description="Which limit, and how much of it is spent; empty if ok.")


def decide(budget: Budget, spent: Usage, seconds: float = 0.0) -> Judgement:
    """Judge the next LLM request by the limit with the largest share spent. `seconds`: LLM time so far."""
    limits = (
        ("tokens", budget.tokens, float(spent.total_tokens)),
        ("calls", budget.calls, float(spent.calls)),
        ("seconds", budget.seconds, seconds),
    )
    shares = [(used / limit, name, used, limit) for name, limit, used in limits if limit is not None]
    share, name, used, limit = max(shares, default=(0.0, "", 0.0, 0.0))
    if share < budget.warn_at:
        return Judgement()
    reason = f"{used:,.0f} of {limit:,.0f} {name} of the LLM budget are spent"
    if share < 1:
        return Judgement(verdict="warn", reason=reason)
    return Judgement(verdict="ask" if budget.ask else "stop", reason=reason)

"""What tokens cost, as the settings say (PLANS_LLM_PRICES): the endpoint does not tell, and prices change. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from plansurvive.plans.usage import Usage

CostOf = Callable[[str, int, int], float | None]
"""The cost of a request to a model, of its prompt tokens and answer tokens; None without a price."""


def unpriced(model: str, prompt: int, completion: int) -> float | None:
    """Without prices, no cost is known."""
    del model, prompt, completion
    return None


def cost(cost_of: CostOf, model: str, usage: Usage) -> float | None:
    """What a request cost; nothing for one that used no tokens; None without a price for its model."""
    if not usage.total_tokens:
        return 0.0
    return cost_of(model, usage.prompt_tokens, usage.completion_tokens)


def total(costs: Iterable[float | None]) -> float | None:
    """The sum; None if one of them is not known."""
    found = list(costs)
    known = [each for each in found if each is not None]
    return round(sum(known), 6) if len(known) == len(found) else None

"""The setting of what LLM requests cost. Who shows costs: telemetry, forecasts, evaluations."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator
from pydantic.functional_validators import AfterValidator

_PRICE = re.compile(r"(\S{1,200})=(\d{1,9}(?:\.\d{1,9})?)/(\d{1,9}(?:\.\d{1,9})?)")


def _listed(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def _priced(entries: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [entry for entry in entries if _PRICE.fullmatch(entry) is None]
    if wrong:
        raise ValueError(f"{wrong[0][:100]!r} is not MODEL=INPUT/OUTPUT, the prices of a million tokens: gpt-5=1.25/10")
    return entries


class PriceSettings(BaseModel):
    """Settings of prices."""

    llm_prices: Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_priced)] = ()
    """Prices of a million tokens, `MODEL=INPUT/OUTPUT`, comma separated, in any currency: the metrics then have the
    cost of LLM requests."""

    def cost_of(self, model: str, prompt: int, completion: int) -> float | None:
        """What a request to a model costs; None without a price. A dated name (`gpt-5-2026-01-01`) has the price of the
        longest name that it begins with."""
        prices = {
            found[1]: (float(found[2]), float(found[3]))
            for entry in self.llm_prices
            if (found := _PRICE.fullmatch(entry))
        }
        name = max((each for each in prices if model == each or model.startswith(f"{each}-")), key=len, default=None)
        if name is None:
            return None
        return (prompt * prices[name][0] + completion * prices[name][1]) / 1_000_000

"""Settings of telemetry: traces, metrics and logs, all off by default. The standard OTEL_ variables say where to.

Headers of a collector may hold a key, so they are variables of the process and never settings.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator
from pydantic.functional_validators import AfterValidator

from plansurvive.runtime.setting_groups.web import split_address

_PRICE = re.compile(r"(\S{1,200})=(\d{1,9}(?:\.\d{1,9})?)/(\d{1,9}(?:\.\d{1,9})?)")


def _address(text: str) -> str:
    """HOST:PORT; of a port alone, that of 127.0.0.1."""
    address = f"127.0.0.1:{text}" if text.isdecimal() else text
    if split_address(address)[1] == 0:
        raise ValueError("name the port: Prometheus must find it")
    return address


def _listed(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))


def _priced(entries: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [entry for entry in entries if _PRICE.fullmatch(entry) is None]
    if wrong:
        raise ValueError(f"{wrong[0][:100]!r} is not MODEL=INPUT/OUTPUT, the prices of a million tokens: gpt-5=1.25/10")
    return entries


class TelemetrySettings(BaseModel):
    """Settings of telemetry."""

    otel: bool = False
    """`on`, for workers and clients: traces are exported by OTLP over HTTP, as the standard variables of OpenTelemetry
    say (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`, ...); needs the extra
    `telemetry`."""
    metrics: Annotated[str, AfterValidator(_address)] | None = None
    """`HOST:PORT` where a worker, or all processes of one, serve `/metrics` for Prometheus; a port alone is one of
    127.0.0.1; default: no metrics."""
    log: Literal["text", "json"] = "text"
    """`json`: workers write a JSON object per line to stderr, with plan, step, attempt and trace."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """With `PLANS_LOG=json`, the lowest level that is written: `debug`, `info`, `warning`, `error`."""
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

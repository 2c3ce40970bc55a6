"""What a call claims, by limits.toml: of its tool, of the keys in its arguments, of its task queue; and an LLM request.

A key that is missing in the arguments is the empty key. Keys are shown to people and kept by the limiter, so they are
bounded, and secrets of the worker are taken out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from plansurvive.features.limits.limits_file import Limit, LimitsFile, QueueLimit
from plansurvive.features.limits.model import Claim
from plansurvive.plans.text.safe_text import line

MAX_KEY = 100
"""Characters of a key; a longer one is represented by its digest."""
MAX_TABLES = 15
"""Tables of limits.toml whose patterns match one tool; further ones do not count."""
LLM, TOKENS = "llm", "llm.tokens"


def of_call(
    limits: LimitsFile, tool: str, queue: str, args: Mapping[str, Any], clean: Callable[[str], str]
) -> list[Claim]:
    """The claims of a tool call; `clean` takes secrets out of a text."""
    of_tool = [
        _claim(_bucket(f"tools.{name}", limit, args, clean), limit) for name, limit in limits.of_tool(tool).items()
    ]
    return [*of_tool[:MAX_TABLES], *_of_queue(limits, queue)]


def of_request(limits: LimitsFile, queue: str, tokens: int) -> list[Claim]:
    """The claims of an LLM request that is expected to take so many tokens."""
    llm, claims = limits.llm, list[Claim]()
    if llm.requests or llm.concurrency:
        claims.append(Claim(bucket=LLM, rates=list(llm.requests), concurrency=llm.concurrency))
    if llm.tokens:
        claims.append(Claim(bucket=TOKENS, rates=list(llm.tokens), cost=tokens))
    return [*claims, *_of_queue(limits, queue)]


def _of_queue(limits: LimitsFile, queue: str) -> list[Claim]:
    limit = limits.queues.get(queue)
    return [] if limit is None else [_claim(f"queues.{queue}", limit)]


def _claim(bucket: str, limit: Limit | QueueLimit) -> Claim:
    return Claim(bucket=bucket, rates=list(limit.rate), concurrency=limit.concurrency)


def _bucket(name: str, limit: Limit, args: Mapping[str, Any], clean: Callable[[str], str]) -> str:
    if not limit.path:
        return name
    found: Any = args
    for part in limit.path:
        found = found.get(part) if isinstance(found, Mapping) else None
    text = "" if found is None else str(found)
    key = line(clean(_host(text) if limit.is_host else text))
    if len(key) > MAX_KEY:
        key = f"sha256:{hashlib.sha256(key.encode(errors='replace')).hexdigest()[:32]}"
    return f"{name}[{key}]"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""

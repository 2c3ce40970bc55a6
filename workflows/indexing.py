"""A plan's search attributes: how lists and searches of Temporal find it.

A server ends a workflow that sets an attribute larger than 2,048 bytes, so long titles are cut and of very many waiting
steps the first ones are named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

PLAN_STATUS = SearchAttributeKey.for_keyword("PlanStatus")
PLAN_PENDING = SearchAttributeKey.for_keyword_list("PlanPending")
PLAN_TITLE = SearchAttributeKey.for_text("PlanTitle")
MAX_BYTES = 2_000


def updates(status: str, pending: Iterable[str], title: str = "") -> list[SearchAttributeUpdate[Any]]:
    """The attributes to set; the title only when there is one."""
    found: list[SearchAttributeUpdate[Any]] = [PLAN_STATUS.value_set(status), PLAN_PENDING.value_set(first_of(pending))]
    return [*found, PLAN_TITLE.value_set(cut(title))] if title else found


def first_of(names: Iterable[str]) -> list[str]:
    """As many of the names as fit."""
    kept: list[str] = []
    size = 2
    for name in names:
        size += _size(name) + 2
        if size > MAX_BYTES:
            break
        kept.append(name)
    return kept


def cut(text: str) -> str:
    """As much of the text as fits."""
    while _size(text) > MAX_BYTES:
        text = text[: len(text) * 3 // 4]
    return text


def _size(value: Any) -> int:
    """Bytes as the SDK sends it: every character beyond ASCII takes six."""
    return len(json.dumps(value))

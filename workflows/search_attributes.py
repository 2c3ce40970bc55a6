"""A plan's search attributes and memo: how lists and searches of Temporal find and show it.

Who starts a plan may set them at once; `Index` tells the server what has changed since, and nothing else.
A server ends a workflow that sets an attribute larger than 2,048 bytes, so long titles are cut and of very many waiting
steps the first ones are named.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, SearchAttributeUpdate, TypedSearchAttributes

PLAN_STATUS = SearchAttributeKey.for_keyword("PlanStatus")
PLAN_PENDING = SearchAttributeKey.for_keyword_list("PlanPending")
PLAN_TITLE = SearchAttributeKey.for_text("PlanTitle")
PLAN_RESUMES = SearchAttributeKey.for_keyword("PlanResumes")
ASKING = "asking"
"""The PlanStatus of a plan that waits for somebody, which the index cannot name."""
MAX_BYTES = 2_000


class Index:
    """What the server's index says of this run of a workflow."""

    def __init__(self) -> None:
        found = workflow.info().typed_search_attributes
        self._shown = (found.get(PLAN_STATUS) or "", list(found.get(PLAN_PENDING) or []))
        self._begun_with_status = bool(self._shown[0])
        self._title = found.get(PLAN_TITLE) or ""
        self._listed = {name: workflow.memo_value(name, None) for name in ("title", "steps")}

    def tell(self, status: str, pending: Iterable[str], title: str, *, known: bool) -> None:
        """Have it say this. `known`: the server knows our attributes; else it knows those the plan was started with.

        Where it cannot say who waits, its status is `asking` while somebody does: who reads that must ask the plan.
        A title alone is no event's worth: another one is told with the next change.
        """
        asking = first_of(pending)
        shown = (status, asking) if known else (ASKING if asking else status, self._shown[1])
        if shown == self._shown or not (known or self._begun_with_status):
            return
        changed: list[SearchAttributeUpdate[Any]] = [PLAN_STATUS.value_set(shown[0])]
        if shown[1] != self._shown[1]:
            # An empty list comes out of a continue-as-new as a list of one empty text.
            changed.append(PLAN_PENDING.value_set(shown[1]) if shown[1] else PLAN_PENDING.value_unset())
        if title and cut(title) != self._title and (known or self._title):
            self._title = cut(title)
            changed.append(PLAN_TITLE.value_set(self._title))
        self._shown = shown
        workflow.upsert_search_attributes(changed)

    @property
    def titled(self) -> bool:
        """Whether a title was told."""
        return bool(self._title)

    def describe(self, title: str, steps: int) -> None:
        """Have lists show another title and number of steps, where whoever started the plan had them show any."""
        listed = {"title": title[:1_000] or self._listed["title"], "steps": steps}
        if listed != self._listed and self._listed["steps"] is not None:
            self._listed = listed
            workflow.upsert_memo(listed)


def takes_resumes() -> bool:
    """Whether the server is known to know PlanResumes: the plan itself was started with it."""
    return workflow.info().typed_search_attributes.get(PLAN_RESUMES) is not None


def first(status: str, title: str, resumes: str = "") -> TypedSearchAttributes:
    """The attributes to start a plan with; `resumes`: the one whose run it goes on from, which is found by it."""
    pairs: list[SearchAttributePair[Any]] = [SearchAttributePair(PLAN_STATUS, status)]
    pairs += [SearchAttributePair(PLAN_TITLE, cut(title))] if title else []
    return TypedSearchAttributes([*pairs, SearchAttributePair(PLAN_RESUMES, resumes)] if resumes else pairs)


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

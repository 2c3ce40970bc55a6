"""A plan's search attributes and memo, which Temporal's lists and searches use.

They may be set at start; `Index` then upserts only what has changed. The server terminates a workflow that sets an
attribute larger than 2,048 bytes, so long titles and long lists of steps awaiting approval are truncated.

The client sets them at the start: each update is an event and a write to the index, and two cost a plan of 20 steps 8 %
of its time. A workflow that sets an unknown one gets stuck.
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
"""PlanStatus of a plan with steps awaiting approval, on servers without the attribute PlanPending."""
MAX_BYTES = 2_000
"""Size limit of one attribute's value, below the server's 2,048."""


class Index:
    """The search attributes and memo of this workflow, as last sent to the server."""

    def __init__(self) -> None:
        attributes = workflow.info().typed_search_attributes
        self._shown = (attributes.get(PLAN_STATUS) or "", list(attributes.get(PLAN_PENDING) or []))
        self._started_with_status = bool(self._shown[0])
        self._title = attributes.get(PLAN_TITLE) or ""
        self._host = workflow.memo_value("host", "")
        self._listed = {name: workflow.memo_value(name, None) for name in ("title", "steps", "timeout")}

    def publish(self, status: str, pending: Iterable[str], title: str, *, known: bool) -> None:
        """Upsert what has changed. `known`: all our attributes are registered; otherwise only those set at start are.

        Without PlanPending, the status is `asking` while a step awaits approval; readers then query the plan for which.
        A changed title alone is not worth an event: it is sent with the next change.
        """
        awaiting = first_of(pending)
        shown = (status, awaiting) if known else (ASKING if awaiting else status, self._shown[1])
        if shown == self._shown or not (known or self._started_with_status):
            return
        changed: list[SearchAttributeUpdate[Any]] = [PLAN_STATUS.value_set(shown[0])]
        if shown[1] != self._shown[1]:
            # Unset instead of []: after continue-as-new an empty list comes back as a list of one empty string.
            changed.append(PLAN_PENDING.value_set(shown[1]) if shown[1] else PLAN_PENDING.value_unset())
        if title and cut(title) != self._title and (known or self._title):
            self._title = cut(title)
            changed.append(PLAN_TITLE.value_set(self._title))
        self._shown = shown
        workflow.upsert_search_attributes(changed)

    @property
    def titled(self) -> bool:
        """Whether the server has a title."""
        return bool(self._title)

    def publish_memo(self, title: str, steps: int, timeout: float | None) -> None:
        """Upsert title, number of steps and time limit in the memo, if the plan was started with it and they changed.

        Of a plan that was edited.
        """
        listed = {"title": title[:1_000] or self._listed["title"], "steps": steps, "timeout": timeout}
        if listed != self._listed and self._listed["steps"] is not None:
            self._listed = listed
            workflow.upsert_memo(listed)

    def publish_host(self, name: str) -> None:
        """Upsert in the memo where the plan's files are, if that changed."""
        if name != self._host:
            self._host = name
            workflow.upsert_memo({"host": name})


def takes_resumes() -> bool:
    """Whether PlanResumes is registered on the server, judged by whether the plan itself was started with it."""
    return workflow.info().typed_search_attributes.get(PLAN_RESUMES) is not None


def first(status: str, title: str, resumes: str = "") -> TypedSearchAttributes:
    """The search attributes to start a plan or agent with; `resumes`: id of the run it resumes."""
    pairs: list[SearchAttributePair[Any]] = [SearchAttributePair(PLAN_STATUS, status)]
    pairs += [SearchAttributePair(PLAN_TITLE, cut(title))] if title else []
    return TypedSearchAttributes([*pairs, SearchAttributePair(PLAN_RESUMES, resumes)] if resumes else pairs)


def first_of(names: Iterable[str]) -> list[str]:
    """The first names that together fit into MAX_BYTES."""
    fitting: list[str] = []
    size = 2  # the brackets; each name adds a comma and a space
    for name in names:
        size += _size(name) + 2
        if size > MAX_BYTES:
            break
        fitting.append(name)
    return fitting


def cut(text: str) -> str:
    """The text, shortened until it fits into MAX_BYTES."""
    while _size(text) > MAX_BYTES:
        text = text[: len(text) * 3 // 4]
    return text


def _size(value: Any) -> int:
    """Bytes of the JSON the SDK sends, which escapes every character beyond ASCII."""
    return len(json.dumps(value))

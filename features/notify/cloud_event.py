"""A notification for programs: a CloudEvent 1.0 in structured JSON (media type `application/cloudevents+json`).

Its `id` is that of the delivery, the same for every attempt, so a receiver can tell what it has seen. It holds the
whole calls with their digests; where they are longer than the target takes, the digests alone (`whole` is false).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from plansurvive.features.notify.messages import Item, command_of, digest_of, title_of
from plansurvive.features.notify.outbox import Delivery

TYPE = "org.plans-that-survive"
"""Prefix of the type: `org.plans-that-survive.awaiting`, `.awaiting.reminder`, `.failed`, ..."""


def type_of(delivery: Delivery) -> str:
    """The type of a delivery's event."""
    stage = "" if delivery.stage == "first" else f".{delivery.stage}"
    return f"{TYPE}.{delivery.event}{stage}"


def body(delivery: Delivery, items: Sequence[Item], *, page: str = "", limit: int = 262_144) -> bytes:
    """The event as JSON of at most `limit` bytes, with whole calls or without."""
    for whole in (True, False):
        text = _json(_event(delivery, items, page, whole=whole))
        if len(text) <= limit:
            return text
    few = list(items)
    while len(few) > 1:
        few = few[: len(few) // 2]
        text = _json(_event(delivery, few, page, whole=False, left=len(items) - len(few)))
        if len(text) <= limit:
            break
    return text


def _event(delivery: Delivery, items: Sequence[Item], page: str, *, whole: bool, left: int = 0) -> dict[str, Any]:
    subject = items[0].notice.subject
    return {
        "specversion": "1.0",
        "id": delivery.id,
        "source": f"{page}/plans/{quote(subject.plan_id)}",
        "type": type_of(delivery),
        "subject": subject.plan_id,
        "time": max(each.notice.time for each in items).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": {
            "title": title_of(delivery, items),
            "event": delivery.event,
            "stage": delivery.stage,
            "reminder": delivery.number,
            "whole": whole,
            "more": left,
            "items": [_item(each, page, whole=whole) for each in items],
        },
    }


def _item(item: Item, page: str, *, whole: bool) -> dict[str, Any]:
    notice, waiting, view = item.notice, item.notice.waiting, item.view
    subject = notice.subject
    said: dict[str, Any] = {
        "id": notice.id, "planId": subject.plan_id, "workflowId": subject.workflow_id, "planTitle": subject.title,
        "time": notice.time.isoformat().replace("+00:00", "Z"),
        **({"page": f"{page}/plans/{quote(subject.plan_id)}"} if page else {}),
    }  # fmt: skip
    if waiting is None:
        return said | {"text": notice.text}
    digest = digest_of(item)
    said |= {"stepId": waiting.step_id, "kind": waiting.kind, "digest": digest, "command": command_of(notice, digest)}
    said |= {"link": item.link} if item.link else {}
    if view is not None and whole:
        shown = view.model_dump(mode="json", exclude={"values", "unusual", "step_id", "kind", "digest", "since"})
        said |= {"call": shown}
    return said


def _json(event: dict[str, Any]) -> bytes:
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str).encode(errors="replace")

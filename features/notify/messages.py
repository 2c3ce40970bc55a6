"""A notification in words, for mail and chat: what waits, all of it, and how to decide about it.

Whatever plans, models and files wrote is in `data` blocks, exactly as the approval prompt shows it (`call_text`,
`safe_text`), and stays data in each markup: escaped in HTML, in a code block in Markdown. A call that a channel has no
room for, or could take for markup, is not cut: the message then has its digest, and where to read all of it.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from plansurvive.features.notify.outbox import Delivery, Notice
from plansurvive.features.notify.rules import REVIEW
from plansurvive.plans.flow.ids import pattern_of
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.text.safe_text import line
from plansurvive.plans.views.models.card import QUESTION, Card, command, wanted
from plansurvive.plans.views.steps.call_text import call_rows, value_rows

Markup = Literal["text", "markdown", "html"]
LISTED = 20
"""Decisions that a message lists; of more it says how many there are."""
TITLE_CHARACTERS = 150
_MARKUP = re.compile(r"```|<[!@#a-zA-Z/]|@(?:everyone|here|channel|all)\b|\]\(")
"""What a chat could act on even in a code block: its end, a mention, a link, a tag."""

_ODD = re.compile(r"[^\w.\[\]*#/-]")


class Item(NamedTuple):
    """One thing that a message says."""

    notice: Notice
    view: Card | None = None
    """The decision as the plan shows it now; None: of a review, a remark and an end, or if the plan did not answer."""
    link: str = ""
    """The one-time link that decides exactly this, if there is one."""
    until: datetime | None = None
    """When that expires."""
    views: ViewSet = NO_VIEWS
    """What features add to views: their words for what is proposed."""


class Message(NamedTuple):
    """A notification for one channel."""

    title: str
    body: str
    whole: bool
    """Whether every call is in it."""


class _Block(NamedTuple):
    """A part of a message. `words` are ours, `data` is theirs, a `link` is a label and a URL."""

    kind: Literal["words", "data", "link"]
    text: str
    url: str = ""


def message(
    delivery: Delivery, items: Sequence[Item], *, page: str = "", limit: int = 30_000, markup: Markup = "text"
) -> Message:
    """The message in a markup, of at most `limit` characters; `page`: URL of the web page, if there is one."""
    title = title_of(delivery, items)
    blocks = [_Block("words", _sentence(delivery, items)), *_bodies(items[:LISTED], page, whole=True)]
    if not any(each.kind == "data" and not _fits(each.text, markup) for each in blocks):
        body = _written(blocks, markup)
        if len(body) + len(title) <= limit and len(items) <= LISTED:
            return Message(title, body, whole=True)
    number = min(len(items), LISTED)
    while number:
        shown = _bodies(items[:number], page, whole=False, markup=markup)
        blocks = [_Block("words", _sentence(delivery, items)), *shown]
        left = len(items) - number
        blocks += [_Block("words", f"and {left} more: plan pending")] if left else []
        body = _written(blocks, markup)
        if len(body) + len(title) <= limit:
            return Message(title, body, whole=False)
        number //= 2
    return Message(title, _written([_Block("words", _sentence(delivery, items))], markup)[:limit], whole=False)


def title_of(delivery: Delivery, items: Sequence[Item]) -> str:
    """The title, on one line: the plan, the step and what it waits for, or how the plan ended."""
    first = items[0].notice
    subject = first.subject.root.removeprefix("plan-") or first.subject.plan_id
    before = {"first": "", "reminder": "Reminder: ", "escalation": "Escalated: "}[delivery.stage]
    if first.waiting is None:
        what = "LLM budget" if delivery.event == "budget" else delivery.event
        return line(f"{before}{first.subject.plan_id}: {what}")[:TITLE_CHARACTERS]
    if len(items) == 1:
        return line(f"{before}{first.subject.plan_id}: {_wanted(items[0])}")[:TITLE_CHARACTERS]
    return line(f"{before}{subject}: {len(items)} decisions wait")[:TITLE_CHARACTERS]


def command_of(notice: Notice, digest: str) -> str:
    """The command line that decides, or that shows what is to be decided."""
    plan, waiting = notice.subject.plan_id, notice.waiting
    if waiting is None:
        return f"plan show {plan}"
    if waiting.kind == REVIEW:
        return f"plan review {plan}"
    return command(plan, waiting.step_id, waiting.kind, "" if waiting.kind == QUESTION else digest)


def _wanted(item: Item) -> str:
    waiting = item.notice.waiting
    if waiting is None:
        return ""
    if waiting.kind == REVIEW:
        return "the plan awaits review"
    step = _ODD.sub("?", pattern_of(waiting.step_id))  # item keys, which others choose, are not in it
    return f"step {step} awaits {wanted(waiting.kind, views=item.views)}"


def _sentence(delivery: Delivery, items: Sequence[Item]) -> str:
    """What the message is about, in one sentence."""
    first = items[0].notice
    if first.waiting is None:
        if delivery.event == "budget":
            return f"Plan {first.subject.plan_id}: its LLM budget."
        if delivery.event == "overridden":
            return f"Plan {first.subject.plan_id}: one person has approved a step alone, in place of all who must."
        how = {"partial": "ended, but not every step completed", "cancelled": "was cancelled", "failed": "failed"}
        how["test"] = "does not exist: a test"
        return f"Plan {first.subject.plan_id} {how.get(delivery.event, 'completed')}."
    late = {"first": "", "reminder": " This still waits.", "escalation": " This has waited for long."}[delivery.stage]
    if len(items) == 1:
        return f"Plan {first.subject.plan_id}: {_wanted(items[0])}.{late}"
    counted = Counter((each.notice.subject.plan_id, _wanted(each)) for each in items)
    lines = [f"{number} of plan {plan}: {wanted}" for (plan, wanted), number in counted.most_common(LISTED)]
    return f"{len(items)} decisions wait.{late}\n" + "\n".join(lines)


def _bodies(items: Sequence[Item], page: str, *, whole: bool, markup: Markup = "html") -> list[_Block]:
    """What is said about each item; data that the markup cannot hold is left out."""
    blocks = list[_Block]()
    for item in items:
        data = "\n".join(_rows(item, whole=whole))
        blocks += [_Block("data", data)] if data and _fits(data, markup) else []
        blocks += [_Block("words", row) for row in _about(item, whole=whole)]
        if item.link:
            until = f" (works once, until {item.until:%Y-%m-%d %H:%M} UTC)" if item.until else ""
            blocks.append(_Block("link", f"Decide{until}", item.link))
        if page:
            blocks.append(_Block("link", "The plan", f"{page}/plans/{item.notice.subject.plan_id}"))
    return blocks


def _rows(item: Item, *, whole: bool) -> list[str]:
    """What others wrote about it, and the command that decides, which has the step's id in it."""
    notice, view = item.notice, item.view
    rows = value_rows("plan", notice.subject.title) if notice.subject.title else []
    if notice.waiting is None:
        rows += value_rows("what", notice.text) if notice.text else []
    elif notice.waiting.step_id:
        rows += value_rows("step", notice.waiting.step_id)
    if view is not None:
        rows += call_rows(view) if whole else value_rows("tool", view.tool)
    return [*rows, *value_rows("command", command_of(notice, digest_of(item)))]


def _about(item: Item, *, whole: bool) -> list[str]:
    """The digest of what is decided, and where all of it is if it is not shown."""
    digest, waiting = digest_of(item), item.notice.waiting
    rows = [f"digest {digest}"] if digest else []
    if waiting and waiting.step_id and not whole:
        where = f"plan pending {item.notice.subject.plan_id}"
        rows.append(f"The whole call is not shown here; read it before you decide: {where}")
    return rows


def digest_of(item: Item) -> str:
    """The digest of what a decision is about; empty in a review, and of what needs no decision."""
    waiting = item.notice.waiting
    return item.view.digest if item.view else waiting.digest if waiting else ""


def _fits(data: str, markup: Markup) -> bool:
    """Whether data can be shown in a markup without being taken for it. HTML takes everything."""
    return markup == "html" or not _MARKUP.search(data)


def _written(blocks: Sequence[_Block], markup: Markup) -> str:
    return ("\n\n" if markup != "html" else "\n").join(_WRITERS[markup](each) for each in blocks)


def _text(block: _Block) -> str:
    return f"{block.text}: {block.url}" if block.kind == "link" else block.text


def _markdown(block: _Block) -> str:
    return f"```\n{block.text}\n```" if block.kind == "data" else _text(block)


def _html(block: _Block) -> str:
    text = html.escape(block.text)
    if block.kind == "link":
        return f'<p><a href="{html.escape(block.url)}">{text}</a></p>'
    return f"<pre>{text}</pre>" if block.kind == "data" else f"<p>{text.replace(chr(10), '<br>')}</p>"


_WRITERS = {"text": _text, "markdown": _markdown, "html": _html}

"""What is to be said to whom, and when: the state of `NotifyWorkflow`, and every decision about it.

One outbox serves a plan with all plans and agents below it, so that five hundred items that await approval are a few
messages and not five hundred. Nothing is dropped: what may not be sent yet waits, and is part of the next message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from plansurvive.features.notify.rules import News, Waiting
from plansurvive.plans.model import Value
from plansurvive.plans.model.notify import Event, NotifyRule
from plansurvive.plans.signature import Signature
from plansurvive.plans.step_state import State

WINDOW = timedelta(seconds=1)
"""How long the first message waits for others of its kind."""
BURST = 10
"""Messages to a target that are sent without a pause."""
BURST_TIME = timedelta(minutes=10)
PAUSE = timedelta(minutes=1)
"""Least time between two messages to a target after a burst; what comes meanwhile is one message."""
IN_MESSAGE = 200
"""Things said in one message."""
REMINDERS = 100
"""Reminders of one decision; after those, nobody reads them."""
SEEN = 2_000
"""Things that are remembered as known, against news that a crashed worker hands over twice."""
LINGER = timedelta(hours=1)
"""How long an outbox with nothing to do stays open: news that is handed over twice still meets it."""

Said = Event | Literal["overridden", "test"]
Stage = Literal["first", "reminder", "escalation"]


class Subject(Value):
    """The plan or agent that something is said about."""

    plan_id: str
    workflow_id: str
    run_id: str
    root: str = ""
    title: str = ""


class Notice(State):
    """One thing to say to one target."""

    id: str = Field(description="Names the message: the same for all targets and stages.")
    target: str
    event: Said
    stage: Stage = "first"
    number: int = Field(default=0, description="Of a reminder, from 1.")
    due: AwareDatetime = Field(description="When it is to be sent.")
    subject: Subject
    waiting: Waiting | None = Field(default=None, description="The decision that waits; none: a remark, or an end.")
    text: str = Field(default="", description="The remark, or why the plan ended so.")
    time: AwareDatetime = Field(description="When it happened.")
    remind: float | None = Field(default=None, description="Seconds between reminders.")
    proof: Signature | None = Field(default=None, description="Of what it says, by the worker of the plan.")

    @property
    def content(self) -> dict[str, Any]:
        """What is signed of it: the same for all targets and stages."""
        return self.model_dump(mode="json", include={"id", "subject", "waiting", "text", "time"})

    @property
    def group(self) -> tuple[str, str, str, str]:
        """Notices with the same group may be one message."""
        return (self.target, self.event, self.stage, "" if self.waiting else self.subject.workflow_id)


class Delivery(Value):
    """One message to one target: the input of the activity `notify`."""

    id: str = Field(description="The same for all attempts, so that receivers recognize duplicates.")
    target: str
    event: Said
    stage: Stage
    number: int = Field(default=0, description="Of a reminder, from 1.")
    notices: list[Notice]


class Delivered(Value):
    """Output of the activity `notify`."""

    sent: bool = Field(description="False: nothing that it was about waits any longer.")
    still: list[str] = Field(default_factory=list, description="Ids of the notices that still wait.")


class Outbox(State):
    """What is to be said, and what was; passed whole to continue-as-new."""

    notices: list[Notice] = Field(default_factory=list)
    seen: list[str] = Field(default_factory=list, description="Ids of what was handed over, oldest first.")
    sent: dict[str, list[AwareDatetime]] = Field(default_factory=dict, description="By target, the last messages.")
    said: int = Field(default=0, description="Messages delivered.")
    withdrawn: int = Field(default=0, description="Messages not sent, as what they were about was decided before.")
    lost: int = Field(default=0, description="Messages given up.")
    idle_since: AwareDatetime | None = None

    def take(self, news: News, now: datetime) -> None:
        """Add the notices that follow from the news; what is known already is left out."""
        known = set(self.seen)
        for id, events, notice in notices_of(news, now):
            if id not in known:
                self.seen.append(id)
                told = set[str]()
                for rule in news.rules:
                    # An override is for everybody who would have been asked, whatever else they want to know.
                    event: Said | None = next((each for each in events if each in rule.on), None)
                    event = event if events else "overridden"
                    if event and rule.to not in told:
                        told.add(rule.to)
                        self.notices += _for_rule(rule, notice.model_copy(update={"target": rule.to, "event": event}))
        del self.seen[:-SEEN]

    def due(self, now: datetime, busy: Iterable[str]) -> list[Delivery]:
        """The messages to send now, at most one for each target that is not busy; takes their notices out."""
        taken, found = set(busy), list[Delivery]()
        for notice in sorted(self.notices, key=lambda each: each.due):
            if notice.target in taken or max(notice.due, self.free_at(notice.target, now)) > now:
                continue
            taken.add(notice.target)
            # What is due within the window goes along.
            batch = [each for each in self.notices if each.group == notice.group and each.due <= now + WINDOW]
            batch = batch[:IN_MESSAGE]
            left = {id(each) for each in batch}
            self.notices = [each for each in self.notices if id(each) not in left]
            found.append(_delivery(batch))
        return found

    def next_due(self, now: datetime, busy: Iterable[str]) -> datetime | None:
        """When something is to be sent next, to a target that is not busy; None: nothing waits."""
        taken = set(busy)
        times = [max(each.due, self.free_at(each.target, now)) for each in self.notices if each.target not in taken]
        return min(times, default=None)

    def free_at(self, target: str, now: datetime) -> datetime:
        """When the next message to a target may be sent."""
        recent = [time for time in self.sent.get(target, ()) if time > now - BURST_TIME]
        return max(recent) + PAUSE if len(recent) >= BURST else now

    def ended(self, delivery: Delivery, done: Delivered | None, now: datetime) -> None:
        """Note how a delivery ended (None: given up), and what is to be said about what still waits."""
        if done is None or done.sent:
            self.sent[delivery.target] = [*self.sent.get(delivery.target, [])[-BURST:], now]
        self.said += done is not None and done.sent
        self.withdrawn += done is not None and not done.sent
        self.lost += done is None
        still = {each.id for each in delivery.notices} if done is None else set(done.still)
        for notice in delivery.notices:
            if notice.id in still and notice.waiting and notice.remind and notice.number < REMINDERS:
                self.notices.append(notice.model_copy(update={
                    "stage": "reminder", "number": notice.number + 1, "due": now + timedelta(seconds=notice.remind)
                }))  # fmt: skip


def notices_of(news: News, now: datetime) -> Iterable[tuple[str, tuple[Event, ...], Notice]]:
    """Each thing that the news says: its id, the events that it is (none: for all targets), and what to say."""
    subject = Subject(
        plan_id=news.plan_id, workflow_id=news.workflow_id, run_id=news.run_id, root=news.root, title=news.title
    )
    place = f"{news.workflow_id}/{news.run_id[:8]}"

    def notice(name: str, time: datetime, due: datetime, **more: object) -> Notice:
        id = f"{place}/{name}"
        said = {"id": id, "target": "", "event": "awaiting", "subject": subject, "proof": news.proofs.get(id)}
        return Notice.model_validate(said | {"time": time, "due": due} | more)

    for each in news.waiting:
        events: tuple[Event, ...] = ("budget", "awaiting") if each.kind == "budget" else ("awaiting",)
        made = notice(f"{each.step_id}#{each.mark}", each.since, now + WINDOW, waiting=each)
        yield made.id, events, made
    for remark in news.remarks:
        name = "override" if remark.overridden else "budget"
        made = notice(f"{name}-{remark.seq}", remark.time, now + WINDOW, text=remark.text)
        yield made.id, () if remark.overridden else ("budget",), made
    if news.ended:
        made = notice(f"ended-{news.ended}", news.at, now, text=news.reason)
        yield made.id, (news.ended,), made


def _for_rule(rule: NotifyRule, notice: Notice) -> list[Notice]:
    """The notice for the rule's target, and for the one that it is escalated to."""
    if notice.waiting is None:
        return [notice]
    found = [notice.model_copy(update={"remind": rule.remind})]
    if rule.escalate:
        due = max(notice.due, notice.waiting.since + timedelta(seconds=rule.escalate.after))
        more = {"target": rule.escalate.to, "stage": "escalation", "due": due}
        found.append(notice.model_copy(update=more))
    return found


def _delivery(notices: list[Notice]) -> Delivery:
    first = notices[0]
    number = min(each.number for each in notices)
    named = "\n".join([first.target, first.event, first.stage, *(f"{each.id} {each.number}" for each in notices)])
    digest = hashlib.sha256(named.encode()).hexdigest()[:32]
    return Delivery(
        id=f"msg_{digest}", target=first.target, event=first.event, stage=first.stage, number=number, notices=notices
    )

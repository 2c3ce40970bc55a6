"""The activities `tell` and `notify`: a plan's news reaches its `NotifyWorkflow`, and a message reaches its target.

`notify` may be attempted any number of times: it sends what was not sent yet, about what still waits. Errors name no
address. The file of the targets is read for each message, so that a mended one needs no restart.

One local activity hands news over (one event), and delivery outlives the plan. Rejected: an activity in the plan (six
events, lost with it), an abandoned child per message, and watching by visibility (delayed, unordered, not on every
server).
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pydantic import ValidationError
from temporalio import activity
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError

from plansurvive.activities.beating import beating
from plansurvive.activities.tools.tool import no_fault
from plansurvive.features.notify import cloud_event, webhook
from plansurvive.features.notify.channels import Channel
from plansurvive.features.notify.failures import NotDelivered
from plansurvive.features.notify.messages import Item, message
from plansurvive.features.notify.outbox import Delivered, Delivery, Notice, notices_of
from plansurvive.features.notify.rules import News
from plansurvive.features.notify.sent import Sent
from plansurvive.features.notify.still_waiting import items_of
from plansurvive.features.notify.targets import Target, each, file_of, key_bytes, read_targets, secret_of
from plansurvive.features.signing.model import is_by, signed_bytes, with_signature
from plansurvive.plans.in_views import NO_VIEWS, ViewSet
from plansurvive.plans.signature import FIELD, Signature
from plansurvive.runtime.links import Links
from plansurvive.runtime.settings import SettingError, Settings
from plansurvive.runtime.state_key import private_key, public_key

CODE = "NOT_DELIVERED"
NEWS = "news"
"""Kind of the signature of what a worker says about a plan."""
TELL_TIMEOUT = timedelta(seconds=3)
MENDED_AFTER = timedelta(minutes=1)
"""Pause before the next attempt where a person has to change a setting first."""
MAX_LINKS = 20


@dataclass(frozen=True)
class Notifier:
    """Delivers notifications with the targets of a worker's settings. `fault`: see `worker.build`."""

    settings: Settings
    fault: Callable[[str], None] = no_fault
    views: ViewSet = NO_VIEWS

    @property
    def activities(self) -> list[Callable[..., object]]:
        """Both activities, for a worker."""
        return [self.tell, self.notify]

    @activity.defn(name="tell")
    async def tell(self, news: News) -> None:
        """Hand the news of a plan to its `NotifyWorkflow`, which is started if it does not run."""
        if self.settings.decisions == "signed":
            news = news.model_copy(update={"proofs": await asyncio.to_thread(self._proofs, news)})
        await activity.client().start_workflow(
            "NotifyWorkflow",
            id=f"notify-{news.root}",
            task_queue=activity.info().task_queue,
            start_signal="news",
            start_signal_args=[news],
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
            static_summary=f"notifications of {news.root}"[:200],
            rpc_timeout=TELL_TIMEOUT,
        )

    @activity.defn(name="notify")
    async def notify(self, delivery: Delivery) -> Delivered:
        """Send one message, if what it is about still waits. Returns which of its decisions do."""
        try:
            async with beating(1.0):  # a dead worker's message is then sent by another within seconds
                said = await asyncio.to_thread(self._signed, delivery.notices)
                items = await items_of(activity.client(), said, activity.info().attempt, self.views)
                if not items:
                    return Delivered(sent=False)
                await self.send(delivery, items)
                return Delivered(sent=True, still=[each.notice.id for each in items])
        except NotDelivered as error:
            pause = timedelta(seconds=error.wait) if error.wait else None
            raise ApplicationError(error.text, type=CODE, non_retryable=error.lasting, next_retry_delay=pause) from None
        except SettingError as error:
            raise ApplicationError(error.message, type=CODE, next_retry_delay=MENDED_AFTER) from None

    def _proofs(self, news: News) -> dict[str, Signature]:
        """The signatures of all that the news says: somebody else may signal a `NotifyWorkflow` as well."""
        key, found = private_key(self.settings), dict[str, Signature]()
        for id, _, notice in notices_of(news, news.at):
            subject = notice.subject
            proof = with_signature(
                key, NEWS, subject.workflow_id, subject.run_id, notice.content,
                id=secrets.token_hex(16), made=int(time.time() * 1_000),
            )  # fmt: skip
            found[id] = Signature.model_validate(proof[FIELD])
        return found

    def _signed(self, notices: Sequence[Notice]) -> list[Notice]:
        """The notices that a worker with this key has said, where decisions are signed; else all."""
        key = public_key(self.settings)
        good = [each for each in notices if not key or _is_signed(each, key)]
        if len(good) < len(notices):
            activity.logger.warning("%d notices that no worker signed are left out", len(notices) - len(good))
        return good

    async def send(self, delivery: Delivery, items: Sequence[Item]) -> None:
        """Send one message to the target. Raises NotDelivered, SettingError."""
        target = read_targets(self.settings).targets.get(delivery.target)
        if target is None:
            text = f"there is no target '{delivery.target}' in {file_of(self.settings)}; add it, or name another"
            raise NotDelivered(text, wait=MENDED_AFTER.total_seconds())
        linked = self._with_links(delivery, items, target)
        failures = list[NotDelivered]()
        for number, reference in enumerate(each(target.webhook) or each(target.apprise)):
            name, sent = f"{delivery.id}.{number}", Sent(self.settings.state_dir)
            if await asyncio.to_thread(sent.has, name):
                continue
            try:
                url = secret_of(reference, file_of(self.settings))
                self.fault("before_message")
                await self._send(url, target, delivery, linked)
                self.fault("after_message")
                await asyncio.to_thread(sent.note, name)
            except NotDelivered as error:
                failures.append(error)  # the others are tried all the same
        if failures:
            raise min(failures, key=lambda error: error.lasting)

    async def _send(self, url: str, target: Target, delivery: Delivery, items: Sequence[Item]) -> None:
        page = self.settings.web_url or ""
        if target.webhook is not None:
            keys = [key_bytes(secret_of(key, file_of(self.settings))) for key in each(target.key)]
            body = cloud_event.body(delivery, items, page=page, limit=target.max_bytes)
            return await webhook.post(url, keys, delivery.id, body, target.timeout)
        channel = await asyncio.to_thread(Channel, url)
        written = message(delivery, items, page=page, limit=channel.limit, markup=channel.markup)
        await channel.send(delivery.id, written.title, written.body, target.timeout)
        return None

    def _with_links(self, delivery: Delivery, items: Sequence[Item], target: Target) -> list[Item]:
        """The items with the one-time links that decide exactly what they show, where the web page can honour them."""
        if not self.settings.web_url or not target.has_links:
            return list(items)
        return [
            item if number >= MAX_LINKS else self._with_link(item, target, delivery.target)
            for number, item in enumerate(items)
        ]

    def _with_link(self, item: Item, target: Target, name: str) -> Item:
        view = item.view
        if view is None or view.kind != "approval" or not view.digest:
            return item
        until = datetime.now(UTC) + timedelta(seconds=target.links_for)
        until = min(until, view.deadline) if view.deadline else until
        person = target.person or name
        plan = item.notice.subject
        try:
            token = Links(self.settings).issue(
                plan.plan_id, plan.run_id, view.step_id, view.version, view.digest, person, until
            )
        except ValidationError:  # a link cannot name this step: people decide with the command, or on the page
            return item
        return item._replace(link=f"{self.settings.web_url}/decide/{token}", until=until)


def _is_signed(notice: Notice, key: str) -> bool:
    proof, subject = notice.proof, notice.subject
    if proof is None:
        return False
    content = signed_bytes(NEWS, subject.workflow_id, subject.run_id, notice.content, proof.id, proof.time)
    return is_by(key, proof, content)

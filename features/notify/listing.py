"""Lists the targets of notifications, and sends one a test message. Needs no server; shows no address and no secret."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from pydantic import Field

from plansurvive.features.notify.channels import EXTRA, Channel, is_installed
from plansurvive.features.notify.deliver import Notifier
from plansurvive.features.notify.failures import NotDelivered
from plansurvive.features.notify.messages import Item
from plansurvive.features.notify.outbox import Delivery, Notice, Subject
from plansurvive.features.notify.targets import Target, Targets, each, file_of, key_bytes, read_targets, secret_of
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Value
from plansurvive.plans.model.notify import Event
from plansurvive.runtime.base.extras import install_line
from plansurvive.runtime.settings import SettingError, Settings

TEST = "this is a test; no plan needs anything"


class ListedTarget(Value):
    """A target of notify.toml."""

    name: str
    kind: str = Field(description="webhook, or the services of its Apprise URLs: `mailto`, `slack`.")
    on: list[Event] = Field(default_factory=list, description="Events of all plans that it is notified of.")
    links: bool = Field(description="Messages to it have one-time links.")
    problem: str = Field(default="", description="Why nothing reaches it from this machine.")


def list_targets(settings: Settings) -> list[ListedTarget]:
    """The targets of the settings' notify.toml, by name. Raises SettingError."""
    found = read_targets(settings)
    return [_listed(name, found, settings) for name in sorted(found.targets)]


async def send_test(settings: Settings, target: str) -> None:
    """Send a test message. Raises UNKNOWN_TARGET, NOT_DELIVERED with the reason, SettingError."""
    found = read_targets(settings)
    if target not in found.targets:
        raise PlanError(found.unknown(target), "UNKNOWN_TARGET")
    now = datetime.now(UTC)
    subject = Subject(plan_id="test", workflow_id="plan-test", run_id="", root="plan-test", title="Test")
    notice = Notice(id="test", target=target, event="test", due=now, subject=subject, text=TEST, time=now)
    delivery = Delivery(id=f"msg_{secrets.token_hex(16)}", target=target, event="test", stage="first", notices=[notice])
    try:
        await Notifier(settings).send(delivery, [Item(notice)])
    except NotDelivered as error:
        raise PlanError(error.text, "NOT_DELIVERED") from None


def _listed(name: str, found: Targets, settings: Settings) -> ListedTarget:
    target = found.targets[name]
    on = list(dict.fromkeys(event for rule in found.default if rule.to == name for event in rule.on))
    kind, problem = "webhook" if target.webhook else "apprise", ""
    try:
        kind = _checked(target, settings)
    except SettingError as error:
        problem = error.message
    except NotDelivered as error:
        problem = error.text
    return ListedTarget(name=name, kind=kind, on=on, links=target.has_links, problem=problem)


def _checked(target: Target, settings: Settings) -> str:
    """What the target is, if messages can be sent to it. Raises SettingError, NotDelivered."""
    path = file_of(settings)
    if target.webhook is not None:
        secret_of(target.webhook, path)
        for key in each(target.key):
            key_bytes(secret_of(key, path))
        return "webhook"
    if not is_installed():
        raise NotDelivered(f"apprise is not installed here; run: {install_line(EXTRA)}")
    urls = [secret_of(url, path) for url in each(target.apprise)]
    for url in urls:
        Channel(url)
    return ", ".join(dict.fromkeys(url.partition("://")[0] for url in urls))

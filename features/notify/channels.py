"""Sends mail and chat messages through Apprise (extra `notify`), which is imported with the first message.

Apprise sends in a thread, with its own time limits; a message counts as sent when every receiver of its URL took it.
Mail gets the id of the delivery as a header, by which a mail server can drop what a crash sent twice.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import re
from typing import Any

from plansurvive.features.notify.failures import NotDelivered
from plansurvive.features.notify.messages import Markup
from plansurvive.runtime.base.extras import install_line

EXTRA = "plansurvive[notify]"
HEADER = "X-Plans-Delivery"
TITLE_ROOM = 200
_PREFERRED: tuple[Markup, ...] = ("html", "markdown", "text")
"""By how surely what others wrote stays text: many a chat takes plain text for Markdown."""
_SECRET = re.compile(r"[^/:@?&=\s]{6,}")


def is_installed() -> bool:
    """Whether messages can be sent with Apprise; does not import it."""
    return importlib.util.find_spec("apprise") is not None


class Channel:
    """One Apprise URL: how long its messages may be, in which markup, and how to send one."""

    def __init__(self, url: str) -> None:
        """Raises NotDelivered if Apprise is missing or does not know the URL."""
        try:
            import apprise
        except ImportError:
            raise NotDelivered(
                f"apprise is not installed on the worker; run: {install_line(EXTRA)}", wait=600.0
            ) from None
        self._url = url
        self._apprise: Any = apprise
        plugin = apprise.Apprise.instantiate(url, asset=apprise.AppriseAsset(app_id="plans", async_mode=False))
        if not isinstance(plugin, apprise.NotifyBase):
            raise NotDelivered("Apprise does not know the URL of the target; check it", wait=600.0)
        self._plugin: Any = plugin
        self.markup = _markup_of(self._plugin)
        self.limit = max(50, int(plugin.body_maxlen) - (0 if plugin.title_maxlen else TITLE_ROOM))

    async def send(self, id: str, title: str, body: str, timeout: float) -> None:
        """Send a message. Raises NotDelivered."""
        if isinstance(getattr(self._plugin, "headers", None), dict) and "mailto" in self._url[:7]:
            self._plugin.headers[HEADER] = id
        try:
            error = await asyncio.wait_for(asyncio.to_thread(self._send, title, body), timeout)
        except TimeoutError:
            raise NotDelivered(f"the target took longer than {timeout:g} s") from None
        if error is not None:
            raise NotDelivered(f"the target did not take the message{error}")

    def _send(self, title: str, body: str) -> str | None:
        """None if it was sent, else why not."""
        sender = self._apprise.Apprise()
        sender.add(self._plugin)
        with self._apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:
            done = sender.notify(body=body, title=title, body_format=self.markup)
            last = (said.getvalue().strip().splitlines() or [""])[-1]
        return None if done else f": {self._without_secrets(last)[:300]}" if last else ""

    def _without_secrets(self, text: str) -> str:
        """A line of Apprise's log without any longer part of the URL."""
        for part in sorted(_SECRET.findall(self._url), key=len, reverse=True):
            text = text.replace(part, "***")
        return text


def _markup_of(plugin: Any) -> Markup:
    """The markup to write in, of those that a service takes, unless its URL says which (`format=`)."""
    given = plugin.notify_format if isinstance(plugin.notify_format, tuple) else (plugin.notify_format,)
    wanted = next((each for each in _PREFERRED if each in given), "text")
    found = str(plugin.resolve_format(wanted).value)
    return next((each for each in _PREFERRED if each == found), "text")

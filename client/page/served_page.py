"""Which web page this state directory serves: a record of the process, private to its user, as it holds the link."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from plansurvive.runtime import daemon
from plansurvive.runtime.settings import Settings

FILE = "web.json"


class ServedPage(daemon.Process):
    """A page that is being served. `link`: the address of its first page, with the secret if it has one."""

    link: str

    def link_to(self, path: str) -> str:
        """The link to another page."""
        return urlsplit(self.link)._replace(path=path).geturl()

    def plan(self, plan_id: str, *more: str) -> str:
        """The link to the page of a plan, or to one below it."""
        return self.link_to("/" + "/".join(quote(part, safe="") for part in ("plans", plan_id, *more)))


def served(settings: Settings) -> ServedPage | None:
    """The page that is served with this state directory, if one is."""
    return ServedPage.read(_file(settings))


def without_key(link: str) -> str:
    """The address of a page without the secret: of no use to others who read it, and enough for a signed-in browser."""
    return urlsplit(link)._replace(query="", fragment="").geturl()


@contextmanager
def recorded(settings: Settings, link: str) -> Iterator[ServedPage]:
    """Record that this process serves a page, until it does not; the last one to begin is the one that is found."""
    settings.make_state_dir()
    page = ServedPage(pid=os.getpid(), began=daemon.began(os.getpid()) or "", link=link)
    page.write(_file(settings))
    try:
        yield page
    finally:
        if ServedPage.last(_file(settings)) == page:
            _file(settings).unlink(missing_ok=True)


def _file(settings: Settings) -> Path:
    return settings.state_dir / FILE

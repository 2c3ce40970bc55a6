"""The seam of the web page: what features, apps and other distributions add to it, and what it gives to them.

A module of pages has `routes`, whose templates are in the folder `templates` beside it, below the name of the feature
or app (`limits/limits.html`). As far as it wants them, it has as well:

- `LINKS`: place -> `Link`. Places: `navigation`; `start`, beside the button that starts a plan: the address takes the
  form of that page, and a template's name as `?template=`; `plan`, among the tabs of a plan: the address is below
  that of the plan; `agents`, in a sentence about agents of one's own
- `MOUNT`: `mount(site) -> Mounted | None`, for what runs as long as the page is served, and what programs call

Features and apps have the module `pages`; another distribution names its module in the entry points `plans.pages`.
Who may call a handler, it says with `client.access.needs`; without that, everybody with a login may, and it may only
show. A template extends `base.html`, and may use `_macros.html`, `drafts/_parts.html` and `start/_*.html` of the page.

    @needs(Role.OPERATOR)
    async def empty(request: Request) -> Response:
        await form_of(request)  # of client.access.forms: checks the token
        await bins.empty(await site_of(request).client(), person_of(request).name)
        return done(request, "/bins", "The bins are empty.")

    routes = [Route("/bins/empty", empty, methods=["POST"])]
    LINKS = {"navigation": Link("bins", "/bins", "Bins")}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from temporalio.client import Client

from plansurvive.client import apps
from plansurvive.client.access import Access
from plansurvive.client.access.browser import own_path
from plansurvive.client.access.guard import Entrance
from plansurvive.client.watchers.hub import Hub
from plansurvive.runtime.background_worker import ensure_worker
from plansurvive.runtime.connect import Connection
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.sides import sides
from plansurvive.runtime.task_queues import serves_this_machine


class Site(Protocol):
    """The web page as it is served: what its pages share."""

    settings: Settings
    environ: Mapping[str, str]
    """Of the command that serves it, for what starts plans and workers."""
    access: Access
    hub: Hub
    """Watches plans for all who look at them."""

    async def connected(self) -> Connection:
        """The connection to the server. Raises NotConnected, SettingError. Starts no server."""

    async def client(self) -> Client:
        """The Temporal client. Raises as `connected`."""

    def page(self, request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
        """A page: `template` with `context`. `nav` in it: the name of the link that is marked as current."""

    def say(self, request: Request, text: str) -> None:
        """Keep a message for the next page of this session."""

    def take_said(self, request: Request) -> list[str]:
        """The messages kept for this session; they are shown once."""


class Mounted(Protocol):
    """What a module of pages serves beside its pages, for programs."""

    @property
    def entrance(self) -> Entrance:
        """Which addresses are its own, and who sends a request there."""

    def routes(self) -> Sequence[BaseRoute]:
        """The addresses that it answers."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """What runs as long as the page is served."""


def site_of(request: Request) -> Site:
    """The web page that a request belongs to."""
    site: Site = request.app.state.service
    return site


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
    """A page, see `Site.page`."""
    return site_of(request).page(request, template, status=status, **context)


def done(request: Request, url: str, said: str = "") -> Response:
    """The answer to a form that did what it should: show `url`, a path of this page, with a message on top.

    The same without JavaScript and with htmx, which follows the redirect and takes from the page what it needs.
    """
    if said:
        site_of(request).say(request, said)
    return RedirectResponse(own_path(url), 303)


class Ready(NamedTuple):
    """A server and workers that run what is started."""

    client: Client
    local: bool
    """Whether the workers share this machine's directories."""
    keeps_worker: bool
    """Whether this machine runs a background worker with the page's settings."""


async def ready(request: Request) -> Ready:
    """The client, with a worker started if one is needed, as before a command. Raises NotConnected, WorkerFailed."""
    site = site_of(request)
    connection = await site.connected()
    worker = await ensure_worker(site.settings, connection)
    queue = site.settings.task_queue
    local = connection.is_on_this_machine and await serves_this_machine(connection.client, queue)
    return Ready(connection.client, local, worker is not None)


LinkArea = Literal["navigation", "start", "plan", "agents"]


class Link(NamedTuple):
    """A link to a page."""

    name: str
    """The page that is marked as current gives it as `nav`."""
    url: str
    text: str


class Pages(NamedTuple):
    """The pages of one feature, app or distribution."""

    name: str
    module: ModuleType

    @property
    def templates(self) -> Path:
        """The folder of its templates."""
        return Path(str(self.module.__file__)).parent / "templates"


@cache
def all_pages() -> tuple[Pages, ...]:
    """The pages of features, then of our apps that are installed, then those that entry points name."""
    ours = [Pages(side.__name__.split(".")[-2], side) for side in (*sides("pages"), *apps.sides("pages"))]
    return (*ours, *(Pages(point.name, point.load()) for point in entry_points(group="plans.pages")))


def mounted(site: Site) -> list[Mounted]:
    """What they serve beside their pages, as far as the settings of the site want it."""
    made = [each.module.MOUNT(site) for each in all_pages() if hasattr(each.module, "MOUNT")]
    return [each for each in made if each is not None]


def links(area: LinkArea) -> list[Link]:
    """What all of them have for that area."""
    return [each.module.LINKS[area] for each in all_pages() if area in getattr(each.module, "LINKS", {})]

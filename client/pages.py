"""The seam of the web page: what features, apps and other distributions add to it.

A module of pages has `routes`, whose templates are in the folder `templates` beside it, and, as far as it wants them:

- `ENTRY`: an `Entry` of the navigation
- `OFFER`: an `Entry` for a plan that can be started, beside the button that starts it. Its address takes the form of
  the start page, and a template's name as `?template=`

Features and apps have the module `pages`; another distribution names its module in the entry points `plans.pages`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from plansurvive.client import apps, feature


class Entry(NamedTuple):
    """A link to a page."""

    name: str
    """The page that is marked as current gives it as `nav`."""
    url: str
    text: str


class Pages(NamedTuple):
    """The pages of one feature, app or distribution."""

    name: str
    """Its templates are below this name: `limits/limits.html`."""
    module: ModuleType

    @property
    def templates(self) -> Path:
        """The folder of its templates."""
        return Path(str(self.module.__file__)).parent / "templates"

    def entry(self, kind: str) -> Entry | None:
        """What it has for the navigation (`ENTRY`), or for a plan that can be started (`OFFER`)."""
        found: Entry | None = getattr(self.module, kind, None)
        return found


@cache
def all_pages() -> tuple[Pages, ...]:
    """The pages of features, then of our apps that are installed, then those that entry points name."""
    ours = [Pages(side.__name__.split(".")[-2], side) for side in (*feature.sides("pages"), *apps.sides("pages"))]
    return (*ours, *(Pages(point.name, point.load()) for point in entry_points(group="plans.pages")))


def entries(kind: str) -> list[Entry]:
    """The entries of that kind."""
    return [entry for each in all_pages() if (entry := each.entry(kind)) is not None]

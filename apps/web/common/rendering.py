"""Makes responses of templates. Everything that a template shows is escaped twice: for HTML, and so that characters
nobody would see, or that reorder a text, are visible (`plans.text.safe_text`).

A template writes `{{ text }}`. `{{ text | exact }}` marks everything unusual, for what a person decides on, and
`{{ text | verbatim }}` keeps a text as it is, for form fields that send it back.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from plansurvive.apps.web.common.assets import asset
from plansurvive.client.access import Person, Role, csrf_of
from plansurvive.client.page.pages import all_pages, links, site_of
from plansurvive.plans.errors import PlanError
from plansurvive.plans.text.lengths import seconds as written
from plansurvive.plans.text.safe_text import exact, line, safe
from plansurvive.plans.views.steps.row import MARKS

TEMPLATES = Path(__file__).parent.parent / "templates"


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
    """A page or a fragment of one: `template` with `context`, and what every template may use (`_common`)."""
    return HTMLResponse(render(request, template, **context), status)


def render(request: Request | None, template: str, **context: Any) -> str:
    """The text of a template. `nav` in `context`: the entry of the navigation that is marked as current.

    Without a request, for what is the same for everybody: a template without forms.
    """
    return environment().get_template(template).render((_common(request) if request else {}) | context)


def url_of(path: str, **query: str) -> str:
    """A path of this page with a query string of those fields that are not empty."""
    given = {name: value for name, value in query.items() if value}
    return path + (f"?{urlencode(given)}" if given else "")


def part(text: str) -> str:
    """A text as one part of an address, whatever it holds: a step id may have `/`, `#` and `?`."""
    return quote(text, safe="")


def error_page(request: Request, error: PlanError, status: int, doing: str = "") -> Response:
    """An error as a page: its sentence, its code, what to do; JSON for whoever asks for JSON.

    A page that could not be shown for want of a server or worker asks again by itself.
    """
    if "application/json" in request.headers.get("accept", ""):
        return JSONResponse({"error": {"code": error.code, "message": error.message}}, status)
    comes_back = status == 503 and request.method == "GET"
    context = {"error": error, "doing": doing, "comes_back": comes_back}
    return page(request, "error.html", status=status, nav="", **context)


@cache
def environment() -> jinja2.Environment:
    """The templates and their filters. The filter `safe`, which would end escaping, is ours: it escapes more."""
    added = {each.name: jinja2.FileSystemLoader(each.templates) for each in all_pages()}
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.FileSystemLoader(TEMPLATES), jinja2.PrefixLoader(added)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    found.filters |= {
        "safe": safe, "line": line, "exact": exact, "verbatim": verbatim, "when": when, "clock": clock,
        "duration": duration, "coded": coded, "mark": status_mark, "status": status_word, "part": part,
        "sentence": sentence,
    }  # fmt: skip
    found.globals |= {
        "asset": asset,
        "Role": Role,
        "url_of": url_of,
        "partial": False,
        "duration": duration,
        "links": links,
    }
    return found


_WORD = re.compile(r"[a-z]+(?=[\s,:;]|$)")


def sentence(text: str) -> str:
    """The text with a capital letter first, unless it begins with a name: an address, a file, an option.

    Jinja's `capitalize` writes everything else small, names and ids too.
    """
    return text[:1].upper() + text[1:] if _WORD.match(text) else text


def coded(text: str) -> Markup:
    """A sentence as HTML: what it has between backticks is code. One with an odd number of them is left as it is."""
    parts = safe(text).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    return Markup("").join(Markup("<code>{}</code>").format(each) if at % 2 else each for at, each in enumerate(parts))


def verbatim(text: str) -> Markup:
    """The text with nothing but HTML escaped: for the value of a form field, which is sent back."""
    return escape(text)


def when(moment: datetime | str | None, kind: str = "") -> Markup:
    """A time as `<time>`, in UTC; the browser shows it in its own time zone, and how long ago it was."""
    if not moment:
        return Markup("–")
    found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    text = found.astimezone(UTC)
    html = Markup('<time data-kind="{}" datetime="{}">{} UTC</time>')
    return html.format(kind, text.isoformat(), text.strftime("%Y-%m-%d %H:%M:%S"))


def clock(moment: datetime | str | None) -> Markup:
    """As `when`, but the browser shows the time of day: for what follows "since", "until" or "by"."""
    return when(moment, "clock")


def _shown(value: object) -> object:
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _common(request: Request) -> dict[str, Any]:
    """`person`, `may` (by role), `csrf`, `said`, `path`; `nav` is overwritten by the page. Of a card, for the person:
    `barred`, `ways`.
    """
    person: Person | None = getattr(request.state, "person", None)
    return {
        "request": request,
        "person": person,
        "may": person.may if person else lambda _role: False,
        "barred": lambda card: card.barred(person.viewer) if person else "",
        "ways": lambda card: card.ways(person.viewer) if person else [],
        "csrf": csrf_of(request),
        "can_log_out": site_of(request).access.can_log_out,
        "said": lambda: site_of(request).take_said(request) if person else [],
        "path": request.url.path,
        "now": datetime.now(UTC),
        "nav": "",
    }


PLAN_MARKS = {
    "draft": "✎", "review": "?", "running": ">", "paused": "‖", "completed": "✓", "failed": "✗", "partial": "◐",
    "cancelled": "■", "interrupted": "■",
}  # fmt: skip
STEP_MARKS = {**MARKS, "ready": "·", "blocked": "·", "pending": "·"}


def status_mark(status: str) -> str:
    """The symbol of a plan's or step's status. Colour is never the only sign."""
    return STEP_MARKS.get(str(status)) or PLAN_MARKS.get(str(status), "·")


def status_word(status: str) -> str:
    """A status in words."""
    return str(status).replace("_", " ")


def duration(seconds: float | None) -> str:
    """A duration in seconds: 0.3 s, 12 s, 3:05, 1:02:03; a dash if there is none."""
    return "–" if seconds is None else written(seconds)

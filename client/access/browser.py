"""What is asked of browsers: which requests are the page's own, where an address may lead, what answers forbid.

The page can approve commands. A request with another Host comes from a page whose name was pointed at this machine (DNS
rebinding); one with another Origin, from another site. Both are refused before anything else is looked at. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

SAFE_METHODS = frozenset(("GET", "HEAD"))
METHODS = SAFE_METHODS | {"POST"}
"""No OPTIONS: only another origin asks before it sends, and it may send nothing."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
REFERRER = "Referrer-Policy"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: with it, browsers send `Origin: null` with the page's own forms (Fetch, "append a request
    # `Origin` header").
    REFERRER: "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}
SECURE = {"Strict-Transport-Security": "max-age=31536000"}
"""Added where people open the page by https."""
MAX_TARGET = 16_384
"""Characters of path and query together; a one-time link has at most half of it."""
MAX_HEADERS, MAX_HEAD = 100, 32_768
"""Number and bytes of a request's headers. h11 bounds only those that arrive in parts."""
_ONCE = frozenset((b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest", b"content-length"))


def refusal(
    method: str, headers: Iterable[tuple[bytes, bytes]], host: str, origin: str, *, by_program: bool = False
) -> str | None:
    """Why a request is not the page's own; None if it is, or if it opens a page. Names of headers are lower case.

    `by_program`: the request proves by itself whose it is, and its cookies count for nothing. A program names no
    origin; whatever names one is a browser, and must come from the page itself.
    """
    given: dict[bytes, str] = {}
    for name, value in headers:
        if name in _ONCE and name in given:
            return f"The header {name.decode()} occurs twice."
        given[name] = value.decode("latin-1")
    if given.get(b"host", "").lower() != host:
        return f"This is not the address of the page, which is {origin}."
    site, is_safe = given.get(b"sec-fetch-site"), method in SAFE_METHODS
    claimed = given.get(b"origin")
    if by_program:
        is_own = claimed is None or claimed.lower() == origin
        return None if is_own and site in (None, "same-origin", "none") else _FOREIGN
    if method not in METHODS:
        return None  # the application answers: no page can do that
    if claimed is not None and claimed.lower() != origin:
        return _FOREIGN
    if site in ("same-origin", "none") or (site is None and (is_safe or claimed is not None)):
        return None
    opens = given.get(b"sec-fetch-mode") == "navigate" and given.get(b"sec-fetch-dest") == "document"
    return None if is_safe and opens else _FOREIGN


def own_path(text: str) -> str:
    """A path of this page to lead to, with its query; `/` for anything that could lead to another one."""
    plain = text.isascii() and text.isprintable() and " " not in text and "\\" not in text
    return text if plain and text.startswith("/") and not text.startswith("//") and len(text) <= MAX_TARGET else "/"


_FOREIGN = "This request does not come from the page itself."

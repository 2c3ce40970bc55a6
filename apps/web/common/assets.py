"""Static files below an address with their digest: browsers keep them for ever, and never show an old one.

One digest for the whole folder, so that scripts can import their neighbours by relative names.
"""

from __future__ import annotations

import hashlib
import mimetypes
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

STATIC = Path(__file__).parent.parent / "static"
FOR_EVER = "public, max-age=31536000, immutable"
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}


@cache
def files() -> dict[str, Path]:
    """Every static file, by its path below the folder."""
    found = sorted(path for path in STATIC.rglob("*") if path.is_file())
    return {path.relative_to(STATIC).as_posix(): path for path in found}


@cache
def version() -> str:
    """The digest of all static files."""
    digest = hashlib.sha256()
    for name, path in files().items():
        digest.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def asset(name: str) -> str:
    """The address of a static file, `style.css` or `vendor/htmx.min.js`. Raises KeyError for an unknown one."""
    if name not in files():
        raise KeyError(f"there is no static file {name}")
    return f"/static/{version()}/{name}"


async def static(request: Request) -> Response:
    """Send a static file: for ever with the digest of now, not kept with another one."""
    path = files().get(request.path_params["name"])
    if path is None:
        raise HTTPException(404)
    kind = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    current = request.path_params["version"] == version()
    return FileResponse(path, media_type=kind, headers={"Cache-Control": FOR_EVER if current else "no-cache"})


routes = [Route("/static/{version}/{name:path}", static)]

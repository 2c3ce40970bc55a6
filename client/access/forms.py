"""Forms that people send: bounded, with the CSRF token of their session."""

from __future__ import annotations

import hmac
from collections.abc import AsyncGenerator
from urllib.parse import parse_qsl

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from plansurvive.client.access import csrf_of
from plansurvive.plans.errors import PlanError

MAX_BYTES = 4_000_000
"""Size of a form: a plan file with its contents."""
MAX_FIELDS = 2_000
CSRF = "csrf"
"""Name of the field with the token."""


class BadForm(PlanError):
    """A form that cannot be read, is too large, or does not come from a page of ours."""

    code = "BAD_FORM"


async def form_of(request: Request) -> FormData:
    """The fields of a form that was sent. Raises BadForm; also for one without the token of its session."""
    form = await _parsed(request, await _body(request))
    token = form.get(CSRF)
    own = csrf_of(request)
    if not own or not isinstance(token, str) or not hmac.compare_digest(token.encode(), own.encode()):
        raise BadForm("The form has expired, or was not sent by this page. Load the page again and resend it.")
    return form


def text_of(form: FormData, name: str, default: str = "") -> str:
    """A field of a form as text; `default` if it is missing or a file."""
    value = form.get(name, default)
    return value if isinstance(value, str) else default


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BYTES:
            raise BadForm(f"The form is larger than {MAX_BYTES:,} bytes.")
        parts.append(chunk)
    return b"".join(parts)


async def _parsed(request: Request, body: bytes) -> FormData:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/x-www-form-urlencoded":
            pairs: list[tuple[str, str | UploadFile]] = [*parse_qsl(
                body.decode(), keep_blank_values=True, strict_parsing=bool(body), errors="strict",
                max_num_fields=MAX_FIELDS,
            )]  # fmt: skip
            return FormData(pairs)
        if kind == "multipart/form-data":
            limits = {"max_files": 10, "max_fields": MAX_FIELDS, "max_part_size": MAX_BYTES}
            return await MultiPartParser(request.headers, _once(body), **limits).parse()
    except (ValueError, MultiPartException) as error:
        raise BadForm("The form cannot be read.") from error
    raise BadForm("A form is expected.")


async def _once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
    yield b""

"""The tool http_request: one HTTP request and its response, limited in time and size.

Connections go to public addresses and to what PLANS_HTTP_ALLOW names (activities/network), on redirects as well.
Proxies and credentials from the environment are not used. Only GET and HEAD follow redirects, at most ten, and only
within the same scheme; the headers of the request are not sent to another origin. Requests with another method carry
an `Idempotency-Key` that is the same for all attempts of the step, unless the plan sets its own.
"""

from __future__ import annotations

import asyncio
import codecs
import json
import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pydantic import Field

from plansurvive.activities.network.retry_after import retry_after
from plansurvive.activities.tools.outgoing import OUTGOING
from plansurvive.activities.tools.tool import Tool, ToolContext, tool
from plansurvive.activities.values.results import json_value
from plansurvive.activities.workspace.paths import shown
from plansurvive.plans.errors import ToolError

if TYPE_CHECKING:
    import httpx

    from plansurvive.activities.network.address_policy import AddressPolicy

MAX_RESPONSE_BYTES = 10 * 1024 * 1024
MAX_REDIRECTS = 10
MAX_SECONDS = 300.0
MAX_RETRY_AFTER = 600.0
"""Upper limit for Retry-After, in seconds."""
MAX_URL_CHARACTERS = 8_000
SHOWN_CHARACTERS = 500
_CHARSETS = re.compile(r"(ascii|utf|iso|latin|cp\d|koi8|mac|gb|big5|euc|shift|johab|hz$|tis|hp|kz|ptcp)")
"""Normal names of Python's codecs that are sets of characters. Others are code: `punycode` takes quadratic time."""

_SAFE = ("GET", "HEAD")
_WORTH_RETRYING = (408, 409, 425, 429)

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]


class Answer(TypedDict):
    """The value of http_request."""

    status: int
    headers: dict[str, str]
    body: Any


@tool(
    approval="always",
    approval_exempt={"method": list(_SAFE)},
    sends={"url": "values", "headers": "values", "body": "always"},
    effect="opaque",
    timeout=330.0,
    touches_files=False,
)
async def http_request(
    url: str,
    context: ToolContext,
    method: Method = "GET",
    headers: dict[str, str] | None = None,
    body: Any = None,
    timeout: Seconds = 30.0,
) -> Answer:
    """Send an HTTP request. A status of 400 or above fails the step; 408, 409, 425, 429 and 5xx are retried.

    Args:
        url: An http or https URL, without user name and password; only public addresses can be reached.
        method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; all but GET and HEAD require approval.
        headers: Request headers.
        body: Request body, which requires approval; text is sent unchanged, any other value as JSON.
        timeout: Timeout of the whole request in seconds, at most 300.

    Returns:
        {status, headers, body}; body is the parsed value if the response is JSON, otherwise its text. At most 10 MiB.
    """
    request = _request(url, method, headers or {}, body, context.call.key)
    response, content = await _send(request, timeout, context)
    answer: Answer = {
        "status": response.status_code,
        "headers": {name.lower(): value for name, value in response.headers.items()},
        "body": _body(response, content),
    }
    _check_status(context.masked(url), response, answer["body"], context)
    return answer


HTTP_TOOLS: tuple[Tool, ...] = (http_request,)


def _request(url: str, method: str, headers: dict[str, str], body: Any, key: str) -> httpx.Request:
    import httpx

    address = _address(url)
    given = {name.strip().lower() for name in headers}
    if "host" in given:
        raise ToolError("INVALID_ARGS", "headers: Host cannot be set; the URL says which host receives the request")
    extra = {} if method in _SAFE or "idempotency-key" in given else {"Idempotency-Key": key}
    if body is not None and not isinstance(body, str) and "content-type" not in given:
        extra["Content-Type"] = "application/json"
    extra |= {name: text for name, text in OUTGOING.get().headers.items() if name not in given}
    try:
        content = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        return httpx.Request(method, address, headers=headers | extra, content=content)
    except (ValueError, TypeError) as error:  # UnicodeEncodeError is a ValueError
        raise ToolError("INVALID_ARGS", f"headers or body cannot be sent: {error}") from None


def _address(url: str) -> httpx.URL:
    import httpx

    problem = ""
    try:
        address = httpx.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            problem = "is not an http or https URL"
        elif address.userinfo:
            problem = "contains a user name or password; send an Authorization header instead"
        elif address.port is not None and not 0 < address.port < 65_536:
            problem = "has a port out of range (1 to 65535)"
        elif len(url) > MAX_URL_CHARACTERS:
            problem = f"is longer than {MAX_URL_CHARACTERS} characters"
    except (httpx.InvalidURL, ValueError) as error:
        problem = f"is not a valid URL: {error}"
    if problem:
        raise ToolError("INVALID_ARGS", f"url: {shown(_without_credentials(url))} {problem}")
    return address


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


async def _send(request: httpx.Request, timeout: float, context: ToolContext) -> tuple[httpx.Response, bytes]:
    """The response and its body. Raises HTTP_TIMEOUT, HTTP_UNREACHABLE, OUTPUT_LIMIT or INVALID_ARGS."""
    import httpx

    url = shown(context.masked(str(request.url)))
    try:
        async with asyncio.timeout(timeout) as limit, _client(request.url, context.addresses) as client:
            return await _exchange(client, request, context)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ToolError("HTTP_TIMEOUT", f"{url} took longer than {timeout:g} seconds", retryable=True) from None
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
        raise ToolError("INVALID_ARGS", f"the request to {url} cannot be sent: {error}") from None
    except UnicodeError as error:  # httpx reads the address of every redirect, followed or not
        raise ToolError("HTTP_STATUS", f"{url} redirects to a host that is not valid: {error}") from None
    except httpx.HTTPError as error:
        reason = f"{type(error).__name__}: {error}"
        raise ToolError("HTTP_UNREACHABLE", f"{url}: {reason}; is the server up?", retryable=True) from None


def _client(url: httpx.URL, policy: AddressPolicy) -> httpx.AsyncClient:
    import httpx

    from plansurvive.activities.network.pinned_connections import PinnedTransport
    from plansurvive.activities.network.tls import tls_context

    transport = PinnedTransport(policy, tls_context() if url.scheme == "https" else None)
    return httpx.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=MAX_SECONDS)


async def _exchange(
    client: httpx.AsyncClient, request: httpx.Request, context: ToolContext
) -> tuple[httpx.Response, bytes]:
    """The final response after redirects, and its body."""
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send(request, stream=True)
        try:
            if request.method not in _SAFE or not response.has_redirect_location:
                return response, await _content(response, context)
            request = _redirected(request, response)
        finally:
            await response.aclose()
    raise ToolError("HTTP_STATUS", f"{shown(str(request.url))}: more than {MAX_REDIRECTS} redirects")


def _redirected(request: httpx.Request, response: httpx.Response) -> httpx.Request:
    import httpx

    target = request.url.join(response.headers["location"])
    if target.scheme != request.url.scheme:
        raise ToolError(
            "HTTP_STATUS",
            f"{shown(str(request.url))} redirects to another scheme, {shown(str(target))}; request that URL directly",
        )
    _address(str(target))
    same = (target.host, target.port) == (request.url.host, request.url.port)
    headers = [(name, value) for name, value in request.headers.items() if name != "host"] if same else []
    return httpx.Request(request.method, target, headers=headers)


async def _content(response: httpx.Response, context: ToolContext) -> bytes:
    if "," in response.headers.get("content-encoding", ""):  # each layer multiplies: 1 KB becomes gigabytes
        text = f"{shown(str(response.url))} answered with a body that is compressed more than once"
        raise ToolError("OUTPUT_LIMIT", text)
    content = bytearray()
    length = response.headers.get("content-length", "")
    total = int(length) if re.fullmatch(r"[0-9]{1,15}", length) else 0
    async for piece in response.aiter_bytes():
        content += piece
        arrived = response.num_bytes_downloaded  # of the compressed body, as Content-Length
        of, percent = (f" of {total:,}", 100 * arrived / total) if total else ("", None)
        context.progress(f"{arrived:,}{of} bytes", percent)
        if len(content) > MAX_RESPONSE_BYTES:
            raise ToolError(
                "OUTPUT_LIMIT",
                f"the response of {shown(str(response.url))} is larger than {MAX_RESPONSE_BYTES // 1024 // 1024} MiB;"
                " download it to a file with run_command",
            )
    return bytes(content)


def _body(response: httpx.Response, content: bytes) -> Any:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content and (kind == "application/json" or kind.endswith("+json")):
        try:
            return json_value(content)
        except (ValueError, RecursionError):
            pass  # the content type says JSON, the body is not
    return content.decode(_charset(response.charset_encoding or "utf-8"), "replace")


def _charset(name: str) -> str:
    """The codec for what the server says; UTF-8 for what is no set of characters."""
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return "utf-8"
    return found if _CHARSETS.match(found) else "utf-8"


def _check_status(url: str, response: httpx.Response, body: Any, context: ToolContext) -> None:
    status = response.status_code
    if status < 400:
        return
    text = context.masked(body if isinstance(body, str) else json.dumps(body, ensure_ascii=False))
    text = text[:SHOWN_CHARACTERS].strip()
    retryable = status >= 500 or status in _WORTH_RETRYING
    raise ToolError(
        "HTTP_STATUS",
        f"{shown(url)} answered {status} {response.reason_phrase}" + (f": {text}" if text else ""),
        retryable=retryable,
        retry_after=_retry_after(response) if retryable else None,
    )


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds to wait according to Retry-After, limited to MAX_RETRY_AFTER; None without the header."""
    wait = retry_after(response.headers)
    return min(wait, MAX_RETRY_AFTER) if wait is not None and math.isfinite(wait) else None

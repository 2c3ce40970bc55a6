"""The tool http_request. One request and its answer, bounded in time and size.

Proxies and credentials of the environment are not used. Only GET and HEAD follow redirects, at most ten, and only
within the same scheme; headers given with the request go to the origin they were meant for and no further. Requests
that change something carry an `Idempotency-Key` that is the same over all attempts of the step, unless the plan
gives its own.
"""

from __future__ import annotations

import asyncio
import json
import math
from typing import Annotated, Any, Literal, TypedDict

import httpx
from pydantic import Field

from activities.attempt.results import json_value
from activities.llm.client import tls_context
from activities.llm.errors import retry_after
from activities.tools.tool import Tool, ToolContext, tool
from activities.workspace.paths import shown
from plans.errors import ToolError

MAX_RESPONSE_BYTES = 10 * 1024 * 1024
MAX_REDIRECTS = 10
MAX_SECONDS = 300.0
MAX_RETRY_AFTER = 600.0
"""Seconds a server may make us wait before the next attempt."""
MAX_URL_CHARACTERS = 8_000
SHOWN_CHARACTERS = 500

_SAFE = ("GET", "HEAD")
_WORTH_RETRYING = (408, 409, 425, 429)

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]


class Answer(TypedDict):
    """What http_request gives back."""

    status: int
    headers: dict[str, str]
    body: Any


@tool(approval="always", approval_exempt={"method": list(_SAFE)}, effect="opaque", timeout=330.0, touches_files=False)
async def http_request(
    url: str,
    context: ToolContext,
    method: Method = "GET",
    headers: dict[str, str] | None = None,
    body: Any = None,
    timeout: Seconds = 30.0,
) -> Answer:
    """Send one HTTP request. Status 400 and above fails the step; 5xx, 408, 409, 425 and 429 are tried again.

    Args:
        url: An http or https address, without user name or password.
        method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; all but GET and HEAD need approval.
        headers: Header fields of the request.
        body: A text is sent as it is, any other value as JSON.
        timeout: Seconds the whole exchange may take.

    Returns:
        {status, headers, body}; body is the parsed value where the answer is JSON, its text otherwise. At most 10 MiB.
    """
    response, content = await _send(_request(url, method, headers or {}, body, context.call.key), timeout)
    answer: Answer = {
        "status": response.status_code,
        "headers": {name.lower(): value for name, value in response.headers.items()},
        "body": _body(response, content),
    }
    _check_status(url, response, answer["body"])
    return answer


HTTP_TOOLS: tuple[Tool, ...] = (http_request,)


def _request(url: str, method: str, headers: dict[str, str], body: Any, key: str) -> httpx.Request:
    address = _address(url)
    given = {name.lower() for name in headers}
    extra = {} if method in _SAFE or "idempotency-key" in given else {"Idempotency-Key": key}
    if body is not None and not isinstance(body, str) and "content-type" not in given:
        extra["Content-Type"] = "application/json"
    try:
        content = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        return httpx.Request(method, address, headers=headers | extra, content=content)
    except (ValueError, TypeError) as error:  # UnicodeEncodeError is a ValueError
        raise ToolError("INVALID_ARGS", f"headers or body cannot be sent: {error}") from None


def _address(url: str) -> httpx.URL:
    problem = ""
    try:
        address = httpx.URL(url)
        if address.scheme not in ("http", "https") or not address.host:
            problem = "is no http or https address"
        elif address.userinfo:
            problem = "holds a user name or password; send an Authorization header instead"
        elif address.port is not None and not 0 < address.port < 65_536:
            problem = "has a port out of range (1 to 65535)"
        elif len(url) > MAX_URL_CHARACTERS:
            problem = f"is longer than {MAX_URL_CHARACTERS} characters"
    except (httpx.InvalidURL, ValueError) as error:
        problem = f"is no address: {error}"
    if problem:
        raise ToolError("INVALID_ARGS", f"url: {shown(_without_credentials(url))} {problem}")
    return address


def _without_credentials(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


async def _send(request: httpx.Request, timeout: float) -> tuple[httpx.Response, bytes]:
    """The answer and its body. Raises HTTP_TIMEOUT, HTTP_UNREACHABLE or INVALID_ARGS."""
    url = shown(str(request.url))
    try:
        async with asyncio.timeout(timeout) as limit, _client(request.url) as client:
            return await _exchange(client, request)
    except TimeoutError:
        if not limit.expired():
            raise
        raise ToolError("HTTP_TIMEOUT", f"{url} took longer than {timeout:g} seconds", retryable=True) from None
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
        raise ToolError("INVALID_ARGS", f"the request to {url} cannot be sent: {error}") from None
    except httpx.HTTPError as error:
        reason = f"{type(error).__name__}: {error}"
        raise ToolError("HTTP_UNREACHABLE", f"{url}: {reason}; is the server up?", retryable=True) from None


def _client(url: httpx.URL) -> httpx.AsyncClient:
    verify = tls_context() if url.scheme == "https" else False
    return httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=MAX_SECONDS, verify=verify)


async def _exchange(client: httpx.AsyncClient, request: httpx.Request) -> tuple[httpx.Response, bytes]:
    """The last answer of the chain of redirects, and its body."""
    for _ in range(MAX_REDIRECTS + 1):
        response = await client.send(request, stream=True)
        try:
            if request.method not in _SAFE or not response.has_redirect_location:
                return response, await _content(response)
            request = _redirected(request, response)
        finally:
            await response.aclose()
    raise ToolError("HTTP_STATUS", f"{shown(str(request.url))}: more than {MAX_REDIRECTS} redirects")


def _redirected(request: httpx.Request, response: httpx.Response) -> httpx.Request:
    target = request.url.join(response.headers["location"])
    if target.scheme != request.url.scheme:
        raise ToolError(
            "HTTP_STATUS",
            f"{shown(str(request.url))} redirects to {shown(str(target))}, another scheme; request that address itself",
        )
    _address(str(target))
    same = (target.host, target.port) == (request.url.host, request.url.port)
    headers = [(name, value) for name, value in request.headers.items() if name != "host"] if same else []
    return httpx.Request(request.method, target, headers=headers)


async def _content(response: httpx.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_RESPONSE_BYTES:
            raise ToolError(
                "OUTPUT_LIMIT",
                f"the answer of {shown(str(response.url))} is larger than {MAX_RESPONSE_BYTES // 1024 // 1024} MiB;"
                " fetch it with a command into a file",
            )
    return bytes(content)


def _body(response: httpx.Response, content: bytes) -> Any:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content and (kind == "application/json" or kind.endswith("+json")):
        try:
            return json_value(content)
        except (ValueError, RecursionError):
            pass  # it only says it is JSON
    try:
        return content.decode(response.charset_encoding or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _check_status(url: str, response: httpx.Response, body: Any) -> None:
    status = response.status_code
    if status < 400:
        return
    text = (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False))[:SHOWN_CHARACTERS].strip()
    retryable = status >= 500 or status in _WORTH_RETRYING
    raise ToolError(
        "HTTP_STATUS",
        f"{shown(url)} answered {status} {response.reason_phrase}" + (f": {text}" if text else ""),
        retryable=retryable,
        retry_after=_retry_after(response) if retryable else None,
    )


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds the server asks us to wait, bounded; None when it does not say."""
    wait = retry_after(response.headers)
    return min(wait, MAX_RETRY_AFTER) if wait is not None and math.isfinite(wait) else None

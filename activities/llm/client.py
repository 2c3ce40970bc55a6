"""Sends one chat completion request to an OpenAI-compatible endpoint, through the openai package.

The package is imported at the first request, because importing it is slow. Its own retries are off (Temporal retries),
redirects are not followed, proxies and credentials from the environment are not used, and the response size is limited.
Leaving `post`, also by cancellation, closes the connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx

from activities.llm.errors import LlmError, Reply
from plans.agents.llm_request import BAD_ANSWER
from plans.llm.endpoint import origin_of

MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of a response body."""
CONNECT_SECONDS = 10.0
NO_KEY = "no-key"
"""Sent to a local endpoint that needs no key: the openai package requires one."""


async def post(base_url: str, key: str, body: dict[str, Any], idempotency_key: str, timeout: float) -> Reply:
    """The endpoint's response to a chat completion request, whatever its status. `timeout` is in seconds.

    Raises LlmError LLM_UNAVAILABLE without a response, LLM_BAD_ANSWER if it is larger than MAX_BYTES.
    """
    openai = await asyncio.to_thread(_openai)
    extra = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    limits = httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout))
    async with httpx.AsyncClient(
        transport=_Bounded(base_url), trust_env=False, follow_redirects=False, timeout=limits
    ) as http:
        client = openai.AsyncOpenAI(
            api_key=key or NO_KEY, base_url=base_url, max_retries=0, timeout=limits, http_client=http
        )
        try:
            answer = await client.chat.completions.with_raw_response.create(**body, extra_headers=extra)
            return _reply(answer.http_response)
        except openai.APIStatusError as error:
            return _reply(error.response)
        except openai.APIConnectionError as error:
            raise _unreachable(error, origin_of(base_url)) from None


def _openai() -> Any:
    import openai

    return openai


def _reply(response: httpx.Response) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, response.content)


def _unreachable(error: Exception, origin: str) -> LlmError:
    cause = error.__cause__ or error
    if isinstance(cause, _TooLong):
        return LlmError(BAD_ANSWER, f"the response of {origin} is larger than {MAX_BYTES // 1024 // 1024} MiB")
    what = "did not answer in time" if isinstance(cause, httpx.TimeoutException) else "cannot be reached"
    if isinstance(cause, httpx.RemoteProtocolError | httpx.ReadError):
        what = "closed the connection before its response was complete"
    return LlmError(
        "LLM_UNAVAILABLE",
        f"{origin} {what} ({type(cause).__name__}); check OPENAI_BASE_URL and whether the endpoint is running",
        retryable=True,
    )


class _TooLong(httpx.ReadError):
    """The response is larger than MAX_BYTES."""


class _Bounded(httpx.AsyncBaseTransport):
    """HTTP transport without proxies, with verified certificates and limited response size."""

    def __init__(self, base_url: str) -> None:
        encrypted = httpx.URL(base_url).scheme == "https"
        self._http = httpx.AsyncHTTPTransport(verify=tls_context() if encrypted else False, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._http.handle_async_request(request)
        if isinstance(response.stream, httpx.AsyncByteStream):
            response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._http.aclose()


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in self._stream:
            seen += len(piece)
            if seen > MAX_BYTES:
                raise _TooLong("the response is too large")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


@cache
def tls_context() -> ssl.SSLContext:
    """TLS with the CA certificates of httpx, whatever the environment says. Cached, because loading them is slow."""
    return httpx.create_ssl_context(trust_env=False)

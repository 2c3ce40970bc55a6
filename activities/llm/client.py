"""One chat completion with an OpenAI-compatible endpoint: sends the request and parses the response.

The package is imported at the first request, because importing it is slow. Its own retries are off (Temporal retries),
redirects are not followed, proxies and credentials from the environment are not used, and the response size is limited.
Leaving `post`, also by cancellation, closes the connection.

Responses are parsed defensively: any field may be missing, have another type or an absurd value. A body that is not a
chat completion is the endpoint's fault and retryable (LLM_BAD_ANSWER); a refusal (LLM_REFUSED) and a truncated answer
(LLM_TRUNCATED) are not. Native tool calls become the object's `tool_calls`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from plansurvive.activities.llm.errors import Complaint, LlmError, Reply
from plansurvive.activities.network.tls import tls_context
from plansurvive.plans.llm.answers import native_answer
from plansurvive.plans.llm.endpoint import origin_of
from plansurvive.plans.llm.json_extraction import AnswerProblem, json_object
from plansurvive.plans.llm.request import BAD_ANSWER, MAX_TEXT_BYTES
from plansurvive.plans.usage import Usage

MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of a response body."""
CONNECT_SECONDS = 10.0
NO_KEY = "no-key"
"""Sent to a local endpoint that needs no key: the openai package requires one."""
KEPT_CHARACTERS = 4_000
"""Characters of an overlong answer that are sent back with the request for a shorter one."""
_MOST_TOKENS = 1_000_000_000
_CHARACTERS_PER_TOKEN = 4
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


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


@dataclass(frozen=True)
class Completion:
    """The first choice of a chat completion."""

    text: str
    model: str
    finish_reason: str
    usage: Usage
    refusal: str = ""
    tool_calls: list[tuple[str, str]] = field(default_factory=list)


def read_completion(content: bytes, model: str, asked: int) -> Completion:
    """Parse a response body. `asked` is the length of the messages, to estimate tokens if the endpoint reports none.

    Raises LlmError LLM_BAD_ANSWER, retryable.
    """
    body = _body(content)
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _broken("has no choice with a message", content)
    text = _THINKING.sub("", _text(message.get("content")))
    return Completion(
        text=text,
        model=_named(body.get("model"), model),
        finish_reason=_named(choice.get("finish_reason"), "stop"),
        usage=_usage(body.get("usage"), asked, len(text)),
        refusal=_text(message.get("refusal")),
        tool_calls=_calls(message.get("tool_calls")),
    )


def checked(said: Completion) -> tuple[str, str]:
    """The JSON text of the answer's object and ''; or the text unchanged and what is wrong with it.

    Raises LlmError LLM_REFUSED or LLM_TRUNCATED.
    """
    if said.refusal or said.finish_reason == "content_filter":
        why = f": {said.refusal[:300]}" if said.refusal else " (content filter)"
        raise LlmError("LLM_REFUSED", f"the model '{said.model}' declined to answer{why}", usage=said.usage)
    if said.finish_reason == "length":
        raise LlmError(
            "LLM_TRUNCATED",
            f"the answer of '{said.model}' was truncated after {said.usage.completion_tokens:,} tokens;"
            " raise the model's output limit, or split the request",
            usage=said.usage,
            said=said.text,
        )
    if len(said.text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        cut = said.text[:KEPT_CHARACTERS] + " ...[truncated]"
        return cut, f"The answer was longer than {MAX_TEXT_BYTES // 1024:,} KiB; answer with much less."
    text = native_answer(said.text, said.tool_calls) if said.tool_calls else said.text
    value = json_object(text)
    if isinstance(value, AnswerProblem):
        return text.encode("utf-8", "replace").decode(), value.message
    return json.dumps(value, ensure_ascii=False), ""


def _body(content: bytes) -> dict[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise _broken("is not JSON" if content.strip() else "is empty", content) from None
    if not isinstance(body, dict):
        raise _broken("is not a JSON object", content)
    if body.get("error"):
        raise _broken("contains an error instead of an answer", content)
    return body


def _broken(what: str, content: bytes) -> LlmError:
    said = Complaint.read(content).text
    return LlmError(
        BAD_ANSWER,
        f"the endpoint's response {what}" + (f": {said}" if said else ""),
        retryable=True,
        usage=Usage(calls=1),
    )


def _usage(given: Any, asked: int, answered: int) -> Usage:
    """Token counts of the endpoint, estimated from the lengths where it reports none."""
    counts = given if isinstance(given, dict) else {}
    prompt = _count(counts.get("prompt_tokens"), asked // _CHARACTERS_PER_TOKEN)
    completion = _count(counts.get("completion_tokens"), answered // _CHARACTERS_PER_TOKEN)
    total = _count(counts.get("total_tokens"), prompt + completion)
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, total_tokens=total)


def _count(value: Any, otherwise: int) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if is_count else otherwise


def _text(content: Any) -> str:
    """The text of a message's content: a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _named(value: Any, otherwise: str) -> str:
    return value[:200] if isinstance(value, str) and value else otherwise


def _calls(given: Any) -> list[tuple[str, str]]:
    """Name and JSON arguments of native tool calls; malformed ones get a name or arguments that no tool accepts."""
    functions = [each.get("function") for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    return [
        (_text(each.get("name")), _arguments(each.get("arguments"))) for each in functions if isinstance(each, dict)
    ]


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given or {})

"""Maps error responses of an LLM endpoint to LlmError: a stable code, and whether and when to retry.

    408, 409, 425, 429, 5xx  LLM_UNAVAILABLE, retried after Retry-After if that is at most an hour
    401, 403                 LLM_KEY         402, no quota left   LLM_QUOTA
    404, unknown model       LLM_MODEL       content filter       LLM_REFUSED
    413, context exceeded    LLM_TOO_LONG    3xx                  LLM_UNAVAILABLE, final: not followed
    any other 4xx            LLM_REQUEST

Endpoints report an exceeded context window by code (OpenAI), or only in words: vLLM ("maximum context length is"),
llama.cpp ("exceeds the available context size", with 400 or 500), Anthropic's ("prompt is too long").

An `x-should-retry` header takes precedence over the status. The message for a rejected key (401) quotes nothing of the
response, because servers repeat parts of the key in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plansurvive.activities.network.retry_after import retry_after
from plansurvive.activities.values.errors import one_line
from plansurvive.plans.errors import ToolError
from plansurvive.plans.usage import Usage

LONGEST_WAIT = 3_600.0
"""Maximum Retry-After in seconds; a longer one fails the request so that people notice."""
SHOWN_CHARACTERS = 300
_BUSY = (408, 409, 425, 429)
_NO_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_FILTERED = ("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
_TOO_LONG = ("context_length_exceeded", "string_above_max_length", "request_too_large")
_TOO_LONG_WORDS = re.compile(
    r"maximum context length|exceeds? (the )?(available |model'?s? )?context (size|window|length)"
    r"|exceed_context_size_error|prompt is too long|input is too long for",
    re.IGNORECASE,
)
_NO_MODEL = ("model_not_found", "DeploymentNotFound")


class LlmError(ToolError):
    """An LLM request without a usable answer. `usage` is what it cost nevertheless, `said` the partial answer."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
        said: str = "",
    ) -> None:
        super().__init__(code, message, retryable=retryable, retry_after=retry_after)
        self.usage = usage or Usage()
        self.said = said


@dataclass(frozen=True)
class Reply:
    """An endpoint's complete HTTP response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Complaint:
    """The message and code of an error body, in any of the formats that endpoints use."""

    text: str
    code: str

    @classmethod
    def read(cls, content: bytes) -> Complaint:
        """Parse an error body; a body of unknown format is quoted from its beginning."""
        text = content[:65_536].decode("utf-8", "replace")
        try:
            body: Any = json.loads(text)
        except (ValueError, RecursionError):
            return cls(_one_line(text), "")
        error = body.get("error", body) if isinstance(body, dict) else body
        if not isinstance(error, dict):
            return cls(_one_line(error if isinstance(error, str) else text), "")
        said = error.get("message") or error.get("detail") or error.get("error") or text
        return cls(
            _one_line(said if isinstance(said, str) else json.dumps(said)), str(error.get("code") or error.get("type"))
        )


def failure_of(reply: Reply, origin: str, model: str) -> LlmError:
    """The error for a response that is not 200."""
    said = Complaint.read(reply.content)
    status, quoted = reply.status, f": {said.text}" if said.text else ""
    if status in (401, 403) and said.code not in _FILTERED:
        why = quoted if status == 403 else ""
        return LlmError("LLM_KEY", f"{origin} does not accept the key ({status}){why}; check OPENAI_API_KEY")
    if status == 402 or said.code in _NO_QUOTA:
        return LlmError(
            "LLM_QUOTA", f"the account at {origin} has no quota left ({status}){quoted}; add credit or raise its limit"
        )
    if status == 404 or said.code in _NO_MODEL:
        return LlmError(
            "LLM_MODEL",
            f"{origin} has no model '{model[:100]}' at this address ({status}){quoted};"
            " check PLANS_MODEL and OPENAI_BASE_URL, which usually ends in /v1",
        )
    if said.code in _FILTERED:
        return LlmError("LLM_REFUSED", f"a content filter at {origin} rejected the request{quoted}")
    if status == 413 or said.code in _TOO_LONG or (status in (400, 422, 500) and _TOO_LONG_WORDS.search(said.text)):
        return LlmError(
            "LLM_TOO_LONG",
            f"the request is too long for {origin} ({status}){quoted};"
            " use a model with a larger context window (PLANS_MODEL), or split the request; for agents, set"
            " PLANS_CONTEXT_TOKENS to the model's context window",
        )
    if 300 <= status < 400:
        return LlmError(
            "LLM_UNAVAILABLE",
            f"{origin} redirects elsewhere ({status}), which is not followed; set OPENAI_BASE_URL to the final URL",
        )
    return _by_retry(reply, f"{origin} answered {status}{quoted}")


def _by_retry(reply: Reply, message: str) -> LlmError:
    busy = reply.status in _BUSY or reply.status >= 500
    retryable = {"true": True, "false": False}.get(reply.headers.get("x-should-retry", "").lower(), busy)
    wait = retry_after(reply.headers)
    if not retryable:
        return LlmError("LLM_UNAVAILABLE" if busy else "LLM_REQUEST", message)
    if wait is not None and wait > LONGEST_WAIT:
        longest = f"{LONGEST_WAIT:,.0f}"
        return LlmError(
            "LLM_UNAVAILABLE",
            f"{message}; it asks to wait {_seconds(wait)}, more than the maximum of {longest}; try again later",
        )
    return LlmError("LLM_UNAVAILABLE", message, retryable=True, retry_after=wait)


def _seconds(wait: float) -> str:
    return f"{wait:,.0f} seconds" if wait < 1e12 else "indefinitely"


def _one_line(text: str) -> str:
    line = one_line(text[: 4 * SHOWN_CHARACTERS])
    return line if len(line) <= SHOWN_CHARACTERS else line[:SHOWN_CHARACTERS] + "..."

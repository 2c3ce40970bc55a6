"""Chooses the exchange of a script that answers a request, and counts uses. Thread-safe; independent of HTTP.

A repeated request with the same Idempotency-Key gets its earlier reply, if that was a real answer. So a client that
crashed before it stored the reply can ask again without using up the next exchange.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from examples.scripted_llm.script import Exchange, ReplyScript, Script, text_of

HEAD = 300


@dataclass
class Seen:
    """A received request, and the exchange that answered it."""

    body: dict[str, Any]
    headers: dict[str, str]
    answered: str
    status: int

    def shown(self) -> dict[str, Any]:
        """The request for display, without its key."""
        headers = {name: "..." if name == "authorization" else text for name, text in self.headers.items()}
        return {"answered": self.answered, "status": self.status, "headers": headers, "body": self.body}


@dataclass
class Play:
    """A script in progress: requests received and exchanges used."""

    script: Script
    seen: list[Seen] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    gone: int = 0
    """Number of clients that disconnected while a reply was hanging."""
    _used: dict[int, int] = field(default_factory=dict)
    _replies: dict[str, ReplyScript] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: dict[str, Any], headers: Mapping[str, str]) -> ReplyScript:
        """Choose the reply to a request, and record both."""
        with self._lock:
            name, reply = self._refusal(request, headers) or self._scripted(request, headers)
            self.seen.append(Seen(request, dict(headers), name, reply.status))
            return reply

    @property
    def left(self) -> list[str]:
        """Names of the exchanges that have not been used as often as expected."""
        with self._lock:
            return [
                _name(number, exchange)
                for number, exchange in enumerate(self.script.exchanges)
                if exchange.times > self._used.get(number, 0)
            ]

    def _refusal(self, request: dict[str, Any], headers: Mapping[str, str]) -> tuple[str, ReplyScript] | None:
        """The error for a wrong key, unknown model or response format; None for an acceptable request."""
        if self.script.key and headers.get("authorization") != f"Bearer {self.script.key}":
            return "wrong key", ReplyScript(status=401, error="Incorrect API key provided", code="invalid_api_key")
        if self.script.model and request.get("model") != self.script.model:
            text = f"The model '{request.get('model')}' does not exist"
            return "unknown model", ReplyScript(status=404, error=text, code="model_not_found")
        form = (request.get("response_format") or {}).get("type", "text")
        if form != "text" and form not in self.script.accepts:
            text = f"'response_format' of type '{form}' is not supported by this model"
            return f"no {form}", ReplyScript(status=400, error=text, code="invalid_request_error")
        return None

    def _scripted(self, request: dict[str, Any], headers: Mapping[str, str]) -> tuple[str, ReplyScript]:
        key = headers.get("idempotency-key", "")
        if key in self._replies:
            return "again", self._replies[key]
        for number, exchange in enumerate(self.script.exchanges):
            if exchange.times and self._used.get(number, 0) >= exchange.times:
                continue
            if exchange.when.fits(request):
                self._used[number] = self._used.get(number, 0) + 1
                if key and exchange.reply.status == 200 and exchange.reply.fault is None:
                    self._replies[key] = exchange.reply
                return _name(number, exchange), exchange.reply
            if self.script.order == "listed":
                break
        return "unexpected", self._unexpected(request)

    def _unexpected(self, request: dict[str, Any]) -> ReplyScript:
        messages = request.get("messages") or [{}]
        text = f"no exchange of the script fits; the last message is: {text_of(messages[-1])[:HEAD]!r}"
        self.unexpected.append(text)
        return ReplyScript(status=500, error=text, headers={"x-should-retry": "false"})


def _name(number: int, exchange: Exchange) -> str:
    return exchange.name or f"exchange {number + 1}"

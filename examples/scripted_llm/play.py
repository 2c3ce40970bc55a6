"""Which exchange of a script answers a request, counting how often each was used. Thread-safe; knows nothing of HTTP.

A request that comes again with the same Idempotency-Key gets the reply it got before, as long as that was a real
answer: a client that died before it could note the answer asks again, and the story goes on where it was.
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
    """A request as it came, and how it was answered."""

    body: dict[str, Any]
    headers: dict[str, str]
    answered: str
    status: int

    def shown(self) -> dict[str, Any]:
        """For people: without the key."""
        headers = {name: "..." if name == "authorization" else text for name, text in self.headers.items()}
        return {"answered": self.answered, "status": self.status, "headers": headers, "body": self.body}


@dataclass
class Play:
    """A script being played."""

    script: Script
    seen: list[Seen] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    gone: int = 0
    """Clients that left while they were kept hanging."""
    _used: dict[int, int] = field(default_factory=dict)
    _given: dict[str, ReplyScript] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: dict[str, Any], headers: Mapping[str, str]) -> ReplyScript:
        """The reply to a request; recorded."""
        with self._lock:
            name, reply = self._refusal(request, headers) or self._scripted(request, headers)
            self.seen.append(Seen(request, dict(headers), name, reply.status))
            return reply

    @property
    def left(self) -> list[str]:
        """The exchanges that were to come and did not."""
        with self._lock:
            return [
                _name(number, exchange)
                for number, exchange in enumerate(self.script.exchanges)
                if exchange.times > self._used.get(number, 0)
            ]

    def _refusal(self, request: dict[str, Any], headers: Mapping[str, str]) -> tuple[str, ReplyScript] | None:
        """What a server refuses by itself, whatever the exchanges say."""
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
        if key in self._given:
            return "again", self._given[key]
        for number, exchange in enumerate(self.script.exchanges):
            if exchange.times and self._used.get(number, 0) >= exchange.times:
                continue
            if exchange.when.fits(request):
                self._used[number] = self._used.get(number, 0) + 1
                if key and exchange.reply.status == 200 and exchange.reply.fault is None:
                    self._given[key] = exchange.reply
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

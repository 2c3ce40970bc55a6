"""A tool server at a URL that does what a test asks of it, good or bad: in a thread of the test."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

TOKEN = "the-token"
CLIENT, CLIENT_SECRET = "the-client", "the-client-secret"


@dataclass
class WebServer:
    """What was asked of it, and how it behaves."""

    url: str = ""
    needs_token: bool = False
    behaviour: str = ""
    """What it does with calls: `elsewhere`, `huge`, `packed`, `drop`, `html`, `forgets`; empty: it answers them."""
    elsewhere: str = ""
    issuer: str = ""
    """The authorization server it names; empty: itself."""
    asked: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)
    issued: list[dict[str, list[str]]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def origin(self) -> str:
        """Its URL without the path."""
        return self.url.removesuffix("/mcp")

    def methods(self) -> list[str]:
        """The methods of the messages that came."""
        return [json.loads(body)["method"] for verb, path, _, body in self.asked if verb == "POST" and path == "/mcp"]


class Handler(BaseHTTPRequestHandler):
    """Answers for a WebServer."""

    server_state: WebServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """A message, or a request for a token."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        state = self.server_state
        state.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if self.path == "/token":
            state.issued.append(parse_qs(body.decode()))
            return self.answer(
                200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "again"}
            )
        if state.needs_token and self.headers.get("authorization") != f"Bearer {TOKEN}":
            meta = f'Bearer resource_metadata="{state.origin}/.well-known/oauth-protected-resource/mcp"'
            return self.answer(401, {"no": "token"}, {"WWW-Authenticate": meta})
        message = json.loads(body)
        if message["method"] == "tools/call" and state.behaviour:
            misbehave: Callable[[Any], None] = getattr(self, state.behaviour)
            return misbehave(message)
        return self.reply(message)

    def do_GET(self) -> None:
        """Metadata for OAuth; there is no stream of events."""
        state = self.server_state
        state.asked.append((self.command, self.path, {}, b""))
        if "oauth-protected-resource" in self.path:
            return self.answer(200, {"resource": state.url, "authorization_servers": [state.issuer or state.origin]})
        if "oauth-authorization-server" in self.path:
            found: dict[str, Any] = {"issuer": state.origin, "token_endpoint": f"{state.origin}/token"}
            found |= {"authorization_endpoint": f"{state.origin}/authorize", "response_types_supported": ["code"]}
            found |= {"code_challenge_methods_supported": ["S256"]}
            return self.answer(200, found)
        return self.answer(405, {})

    def do_DELETE(self) -> None:
        """The end of a session."""
        self.answer(200, {})

    def reply(self, message: dict[str, Any]) -> None:
        """A proper answer."""
        method, number = message["method"], message.get("id")
        if number is None:
            return self.answer(202, {})
        if method == "initialize":
            about = {"name": "web", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
            return self.answer(200, rpc(number, result=result), {"Mcp-Session-Id": "s1"})
        if method == "tools/list":
            tools = [{"name": "echo", "inputSchema": {"type": "object"}}]
            return self.answer(200, rpc(number, result={"tools": tools}))
        if method == "tools/call":
            result = {"content": [], "structuredContent": message["params"].get("arguments")}
            return self.answer(200, rpc(number, result=result))
        return self.answer(200, rpc(number, error={"code": -32601, "message": "no such method"}))

    def elsewhere(self, _: dict[str, Any]) -> None:
        """Redirect."""
        self.answer(307, {}, {"Location": self.server_state.elsewhere})

    def huge(self, message: dict[str, Any]) -> None:
        """More than was asked for."""
        self.answer(200, rpc(message["id"], result={"content": [{"type": "text", "text": "x" * 300_000}]}))

    def packed(self, message: dict[str, Any]) -> None:
        """A compressed body that nobody asked for."""
        text = rpc(message["id"], result={"content": [{"type": "text", "text": "x" * 300_000}]})
        self.answer(200, gzip.compress(json.dumps(text).encode()), {"Content-Encoding": "gzip"})

    def drop(self, _: dict[str, Any]) -> None:
        """No answer, and the connection closed."""
        self.close_connection = True

    def html(self, _: dict[str, Any]) -> None:
        """A page of a proxy."""
        self.answer(503, b"<html>try later</html>", {"Content-Type": "text/html"})

    def forgets(self, message: dict[str, Any]) -> None:
        """Forget the session, once."""
        self.server_state.behaviour = ""
        self.answer(404, rpc(message["id"], error={"code": -32600, "message": "Session terminated"}))

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """Send a response."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Be silent."""


def rpc(number: Any, **more: Any) -> dict[str, Any]:
    """A response."""
    return {"jsonrpc": "2.0", "id": number, **more}


@contextmanager
def web_server(**options: Any) -> Iterator[WebServer]:
    """A server at a free port of this machine."""
    state = WebServer(**options)
    handler = type("Handler", (Handler,), {"server_state": state})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_port}/mcp"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.stop.set()
            server.shutdown()

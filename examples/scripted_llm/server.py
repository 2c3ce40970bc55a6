"""HTTP server of a scripted LLM, on a free port of this machine.

    with ScriptedLlm(Script.of([{"reply": {"text": "hello"}}])) as llm:
        ... OPENAI_BASE_URL=llm.url ...
        assert not llm.play.unexpected

It serves `POST /v1/chat/completions` and `GET /v1/models`. `GET /_requests` returns the received requests, `GET /_left`
the unused exchanges and the unexpected requests.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from examples.scripted_llm import protocol
from examples.scripted_llm.play import Play
from examples.scripted_llm.script import ReplyScript, Script

HOST = "127.0.0.1"
LONGEST_REQUEST = 64 * 1024 * 1024


class ScriptedLlm:
    """The server. It listens from construction on, and answers inside the `with` block."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.play = Play(script)
        self.closed = threading.Event()
        self._http = _Server((HOST, port), _Handler)
        self._http.llm = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The value for OPENAI_BASE_URL."""
        return f"http://{HOST}:{self._http.server_port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests received so far."""
        return [seen.body for seen in self.play.seen]

    def close(self) -> None:
        """Stop the server; hanging requests are released."""
        self.closed.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    llm: ScriptedLlm

    def handle_error(self, *_: Any) -> None:
        """Ignore disconnecting clients, which many scripts provoke; print other errors."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            traceback.print_exc()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 300

    def do_GET(self) -> None:
        play = self.server.llm.play
        pages: dict[str, Any] = {
            "/v1/models": lambda: protocol.models(play.script.model or "scripted"),
            "/_requests": lambda: [seen.shown() for seen in play.seen],
            "/_left": lambda: {"left": play.left, "unexpected": play.unexpected},
        }
        page = pages.get(self.path)
        if page is None:
            self._error(ReplyScript(status=404, error=f"there is no {self.path}"))
        else:
            self._send(200, json.dumps(page()).encode())

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        content = self.rfile.read(min(length, LONGEST_REQUEST))
        if self.path != "/v1/chat/completions":
            self._error(ReplyScript(status=404, error=f"there is no {self.path}"))
            return
        try:
            request = json.loads(content)
        except ValueError as error:
            self._error(ReplyScript(status=400, error=f"the request is not JSON: {error}"))
            return
        headers = {name.lower(): text for name, text in self.headers.items()}
        self._play(self.server.llm.play.answer(request, headers), request)

    def log_message(self, *_: Any) -> None:
        """No log output: requests are recorded instead."""

    def _play(self, reply: ReplyScript, request: dict[str, Any]) -> None:
        if self._wait(reply.delay):
            return
        if reply.fault is not None:
            self._fail(reply, request)
        elif reply.body is not None:
            self._send(reply.status, reply.body.encode(), reply.headers)
        elif reply.status != 200:
            self._error(reply)
        elif request.get("stream"):
            self._stream(reply, request)
        else:
            self._send(200, json.dumps(protocol.completion(reply, request)).encode(), reply.headers)

    def _wait(self, seconds: float) -> bool:
        """Sleep; returns whether the server was closed meanwhile."""
        return seconds > 0 and self.server.llm.closed.wait(seconds)

    def _fail(self, reply: ReplyScript, request: dict[str, Any]) -> None:
        body = json.dumps(protocol.completion(reply, request)).encode()
        bodies = {
            "truncated": body[: len(body) // 2],
            "not_json": b"upstream connect error",
            "html": b"<html><body><h1>502 Bad Gateway</h1></body></html>",
            "empty": b"",
            "no_choices": json.dumps({"id": "x", "object": "chat.completion", "choices": []}).encode(),
            "error_body": json.dumps({"error": {"message": "provider failed", "code": 502}}).encode(),
        }
        if reply.fault in bodies:
            self._send(reply.status, bodies[reply.fault], reply.headers)
            return
        if reply.fault == "hang":
            self._hang()
        elif reply.fault == "reset":
            self._head(200, len(body), {})
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True  # `drop`: close without sending a byte

    def _hang(self) -> None:
        """Send nothing until the client disconnects, which is counted, or the server is closed."""
        self.connection.settimeout(0.05)
        while not self.server.llm.closed.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            return
        self.server.llm.play.gone += 1

    def _stream(self, reply: ReplyScript, request: dict[str, Any]) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in protocol.events(reply, request):
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")

    def _error(self, reply: ReplyScript) -> None:
        self._send(reply.status, json.dumps(protocol.error(reply)).encode(), reply.headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        try:
            self._head(status, len(body), headers or {})
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client has disconnected

    def _head(self, status: int, length: int, headers: dict[str, str]) -> None:
        complete = {"Content-Type": "application/json", "Content-Length": str(length)} | headers
        self.send_response(status)
        for name, text in complete.items():
            self.send_header(name, text)
        self.end_headers()

"""Receivers of notifications on this machine: a webhook that checks signatures, and a mail server."""

from __future__ import annotations

import base64
import email
import email.policy
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from aiosmtpd.controller import Controller

from plansurvive.features.notify.webhook import signature
from plansurvive.runtime.server import HOST, free_ports

KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()


class Post(NamedTuple):
    """One request that a sink got, with its answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        """The CloudEvent."""
        data: dict[str, Any] = json.loads(self.body)
        return data

    @property
    def items(self) -> list[dict[str, Any]]:
        """What it says."""
        found: list[dict[str, Any]] = self.event["data"]["items"]
        return found

    @property
    def is_signed(self) -> bool:
        """Whether the signature is by KEY, of this body, id and time."""
        stamp, key = int(self.headers["webhook-timestamp"]), base64.b64decode(KEY.removeprefix("whsec_"))
        return signature(key, self.headers["webhook-id"], stamp, self.body) in self.headers["webhook-signature"].split()


class Sink:
    """A webhook. `status`: what it answers; `gate`: while it is not set, it takes requests and does not answer."""

    def __init__(self) -> None:
        self.status, self.posts = 204, list[Post]()
        self.times = list[float]()
        """When each request arrived, in seconds since 1970."""
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""

    @property
    def taken(self) -> list[Post]:
        """The requests that were answered with success."""
        return [post for post in self.posts if post.status < 300]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events taken, each once: by their ids, as a receiver does."""
        return list({post.headers["webhook-id"]: post.event for post in self.taken}.values())


@contextmanager
def webhook_sink() -> Iterator[Sink]:
    """A webhook on a free port."""
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = sink.status
            sink.times.append(time.time())
            if not sink.gate.is_set():
                sink.posts.append(Post(200, headers, body))
                sink.gate.wait(60)
            else:
                sink.posts.append(Post(status, headers, body))
            try:
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                return  # the sender was killed

        def log_message(self, *_: Any) -> None:
            return

    class Server(ThreadingHTTPServer):
        request_queue_size = 200

    server = Server((HOST, 0), Handler)
    server.daemon_threads = True
    sink.url = f"http://{HOST}:{server.server_port}/hook"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield sink
    finally:
        sink.gate.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Mails:
    """A mailbox."""

    def __init__(self) -> None:
        self.found = list[EmailMessage]()
        self.url = ""

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        """Take one mail."""
        found = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(found, EmailMessage)
        self.found.append(found)
        return "250 OK"

    @property
    def texts(self) -> list[str]:
        """The bodies of the mails."""
        bodies = [mail.get_body(("html", "plain")) for mail in self.found]
        return [str(body.get_content()) for body in bodies if body is not None]


@contextmanager
def mailbox() -> Iterator[Mails]:
    """A mail server on a free port that takes everything."""
    mails = Mails()
    port = free_ports(0, 0)[0]
    controller = Controller(mails, hostname=HOST, port=port)
    controller.start()
    mails.url = f"mailto://{HOST}:{port}?from=plans@example.org&to=ann@example.org&mode=insecure"
    try:
        yield mails
    finally:
        controller.stop()


def targets_file(path: Path, *, hook: str = "", mail: str = "", more: str = "") -> Path:
    """A notify.toml with the targets `hook` and `mail`."""
    text = f'[targets.hook]\nwebhook = "{hook}"\nkey = "{KEY}"\n' if hook else ""
    text += f'[targets.mail]\napprise = "{mail}"\nperson = "ann@example.org"\n' if mail else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + more)
    return path

"""Whether messages to the server are compressed: judged by the bytes that pass a TCP proxy in front of it."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import GrpcCompression

from plansurvive.client.embedding.plugin import PlansPlugin
from plansurvive.runtime.connect import connect
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from tests.kit.lacking import end

TEXT = "compressible " * 3_000
"""39 KB that gzip makes less than 1 KB: small enough to travel in the message rather than through the storage."""
SOME = 13_000
"""Bytes; what else passes with it (the handshake, headers, health checks) is far less."""

LISTENING = {"[::1]": "::1", "127.8.9.10": "127.8.9.10"}
"""Where the proxy listens for a client of this host, if not on 127.0.0.1."""


class Counted:
    """A proxy's port, and how many bytes passed it in each direction."""

    def __init__(self, server: Server) -> None:
        self.to = server.ports[0]
        self.port = self.sent = self.received = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection through."""
        there, back = await asyncio.open_connection("127.0.0.1", self.to)
        self.writers += [back, writer]
        with suppress(OSError):  # an end was closed
            await asyncio.gather(self._pump(reader, back, "sent"), self._pump(there, writer, "received"))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: str) -> None:
        while data := await reader.read(65_536):
            setattr(self, direction, getattr(self, direction) + len(data))
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def counting(server: Server, host: str = "127.0.0.1") -> AsyncIterator[Counted]:
    """A proxy on a free port, in front of the server."""
    counted = Counted(server)
    try:
        proxy = await asyncio.start_server(counted.serve, host, 0)
    except OSError as error:
        end("IPv6", f"nothing can listen on {host}: {error.strerror}", os.environ)
    counted.port = proxy.sockets[0].getsockname()[1]
    try:
        yield counted
    finally:
        proxy.close()
        for writer in counted.writers:
            writer.transport.abort()


async def exchange(client: Client) -> None:
    """Send the text to the server, as the argument of a workflow, and read it back from the history."""
    handle = await client.start_workflow("nobody", TEXT, id=f"text-{uuid.uuid4().hex}", task_queue="nobody")
    history = await handle.fetch_history()
    assert history.events
    await handle.terminate()


async def is_compressed(client: Client, counted: Counted) -> bool:
    """Whether the text passes compressed, both ways."""
    sent, received = counted.sent, counted.received
    await exchange(client)
    sent, received = counted.sent - sent, counted.received - received
    assert (sent < SOME) == (received < SOME), (sent, received)
    assert sent < SOME or sent > len(TEXT), sent
    return sent < SOME


@pytest.mark.parametrize(
    ("host", "compression", "expected"),
    [
        ("127.0.0.1", None, False),
        ("127.8.9.10", None, False),
        ("localhost", None, False),
        ("LOCALHOST", None, False),
        ("[::1]", None, False),
        ("0.0.0.0", None, True),  # leads to this machine, but is no address of it: as any other host
        ("127.0.0.1", "gzip", True),
        ("0.0.0.0", "gzip", True),
        ("0.0.0.0", "none", False),
        ("127.0.0.1", "none", False),
    ],
)
async def test_messages_to_a_server_on_this_machine_are_not_compressed_unless_a_setting_says_so(
    tmp_path: Path, server: Server, host: str, compression: str | None, expected: bool
) -> None:
    variables = {"PLANS_GRPC_COMPRESSION": compression} if compression else {}
    async with counting(server, LISTENING.get(host, "127.0.0.1")) as counted:
        environ = {"HOME": str(tmp_path), "TEMPORAL_ADDRESS": f"{host}:{counted.port}", **variables}
        client = await connect(Settings.read(environ))
        assert await is_compressed(client, counted) == expected


@pytest.mark.parametrize(
    ("host", "compression", "own", "expected"),
    [
        ("127.0.0.1", "auto", GrpcCompression.GZIP, False),
        ("127.0.0.1", "gzip", GrpcCompression.GZIP, True),
        ("0.0.0.0", "auto", GrpcCompression.GZIP, True),
        ("0.0.0.0", "auto", GrpcCompression.NONE, False),
    ],
)
async def test_a_client_with_the_plugin_does_the_same_and_keeps_its_own_choice_for_other_servers(
    settings: Settings, server: Server, host: str, compression: str, own: GrpcCompression, expected: bool
) -> None:
    plugin = PlansPlugin(settings.with_flags(grpc_compression=compression))
    async with counting(server) as counted:
        client = await Client.connect(f"{host}:{counted.port}", plugins=[plugin], grpc_compression=own)
        assert await is_compressed(client, counted) == expected

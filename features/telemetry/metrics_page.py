"""One endpoint for a pool of worker processes: the pages of all of them, each sample with the label `process`.

Each child serves its own metrics at a free port of 127.0.0.1 and writes the address into a file of the state directory;
the process that keeps the children reads these files at every request. A child that does not answer is left out.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from plansurvive.features.telemetry.settings import TelemetrySettings
from plansurvive.runtime.base.atomic_file import write_whole
from plansurvive.runtime.setting_groups.web import split_address
from plansurvive.runtime.settings import SettingError, Settings

SECONDS = 5.0
"""Longest that a child or a scraper may take."""
MOST_BYTES = 32 * 1024 * 1024
TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SAMPLE = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?( (?:[-+]?(?:[0-9][0-9.eE+-]*|Inf)|NaN)(?: [0-9]+)?)")


def announce(settings: Settings, pool: int, child: int, address: str) -> None:
    """Tell the process that keeps this child, whose pid is `pool`, where its metrics are."""
    folder = _folder(settings)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(folder / f"{pool}-{child}", address.encode())


@asynccontextmanager
async def pool_endpoint(settings: Settings) -> AsyncIterator[None]:
    """Serve the metrics of this process's children at PLANS_METRICS, if that is set. Raises SettingError."""
    address = settings.of(TelemetrySettings).metrics
    if address is None:
        yield
        return
    host, port = split_address(address)
    _forget(settings)  # of an earlier process that had this pid
    page = _Page(settings)
    try:
        server = await asyncio.start_server(page.answer, host, port, limit=65_536)
    except OSError as error:
        raise taken(address, error.strerror or str(error)) from None
    try:
        yield
    finally:
        server.close()
        _forget(settings)


def taken(address: str, reason: str) -> SettingError:
    """The error of an address that cannot be served at."""
    return SettingError({"PLANS_METRICS": f"{address} cannot be used: {reason}; choose another port"})


def merged(pages: Iterable[tuple[str, str]]) -> str:
    """One page of several, each with the name of its process. The samples of a metric stand together, as they must."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for process, page in pages:
        family = ""
        for line in page.splitlines():
            if line.startswith(("# HELP ", "# TYPE ")):
                family = line.split(" ", 3)[2]
                known = heads.setdefault(family, [])
                if line[:7] not in [each[:7] for each in known]:
                    known.append(line)
            elif (found := _SAMPLE.fullmatch(line)) is not None:
                labels = ",".join(filter(None, [found[2], f'process="{process}"']))
                samples.setdefault(family or found[1], []).append(f"{found[1]}{{{labels}}}{found[3]}")
    lines = [line for name in samples for line in [*heads.get(name, []), *samples[name]]]
    return "\n".join([*lines, ""])


class _Page:
    def __init__(self, settings: Settings) -> None:
        self._folder = _folder(settings)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then close the connection."""
        with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(2 * SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n", 1)[0].split()
                is_page = head[:1] == [b"GET"] and head[1:2] and head[1].partition(b"?")[0] in (b"/metrics", b"/")
                body = (await self._merged()).encode() if is_page else b"only GET /metrics\n"
                status = "200 OK" if is_page else "404 Not Found"
                fields = f"Content-Type: {TYPE}\r\nContent-Length: {len(body)}\r\nConnection: close"
                writer.write(f"HTTP/1.1 {status}\r\n{fields}\r\n\r\n".encode() + body)
                await writer.drain()
        writer.close()

    async def _merged(self) -> str:
        files = sorted(self._folder.glob(f"{os.getpid()}-*"))
        pages = await asyncio.gather(*(_page(file) for file in files))
        found = [(file.name.rpartition("-")[2], page) for file, page in zip(files, pages, strict=True) if page]
        return await asyncio.to_thread(merged, found)


async def _page(file: Path) -> str:
    """A child's page; empty if it does not answer."""
    try:
        host, port = split_address(file.read_text())
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(f"GET /metrics HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
                answer = await _whole(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        return ""
    head, _, body = answer.partition(b"\r\n\r\n")
    return body.decode("utf-8", "replace") if b" 200 " in head.split(b"\r\n", 1)[0] else ""


async def _whole(reader: asyncio.StreamReader) -> bytes:
    found = bytearray()
    while part := await reader.read(65_536):
        found += part
        if len(found) > MOST_BYTES:
            raise ValueError("the page does not end")
    return bytes(found)


def _forget(settings: Settings) -> None:
    for file in _folder(settings).glob(f"{os.getpid()}-*"):
        file.unlink(missing_ok=True)


def _folder(settings: Settings) -> Path:
    return settings.state_dir / "metrics"

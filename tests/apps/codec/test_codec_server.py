"""The codec server: what the Temporal UI and CLI are shown, and who is not answered."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from google.protobuf import json_format
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.client import Client
from temporalio.converter import DataConverter

from plansurvive.apps.codec.codec_server import MAX_SHOWN, CodecServer
from plansurvive.features.keys.codec import Codec
from plansurvive.features.keys.sealing import Encrypting
from plansurvive.runtime.connect import connect, storage
from plansurvive.runtime.server import Server
from plansurvive.runtime.settings import Settings
from plansurvive.runtime.storage import LocalDirectory, converter
from plansurvive.runtime.value_store import ValueStore
from plansurvive.worker import build
from tests.features.keys.rings import key, live, ring_file

UI = "http://127.0.0.1:8233"
BIG = "x" * 100_000


@pytest.fixture
def values(tmp_path: Path) -> LocalDirectory:
    return LocalDirectory(tmp_path / "values")


@pytest.fixture
def codec(values: LocalDirectory) -> Iterator[CodecServer]:
    with CodecServer(values, [UI], 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def post(codec: CodecServer, path: str, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(codec.address + path, content=content, headers=headers, trust_env=False, timeout=60)


async def stored(data_converter: DataConverter, value: Any) -> Any:
    """The payloads of a value, as Temporal's UI sends them."""
    return json_format.MessageToDict(Payloads(payloads=await data_converter.encode([value])))


def data_of(answer: httpx.Response) -> list[Any]:
    found = json_format.ParseDict(answer.json(), Payloads())
    return [json.loads(payload.data) for payload in found.payloads]


async def test_a_reference_is_shown_as_what_it_refers_to(codec: CodecServer, values: LocalDirectory) -> None:
    asked = await stored(converter(values), {"text": BIG})
    assert BIG not in json.dumps(asked)
    answer = await asyncio.to_thread(post, codec, "/decode", asked)
    assert data_of(answer) == [{"text": BIG}]


@pytest.fixture
def encrypting(tmp_path: Path) -> Codec:
    return Codec(live(ring_file(tmp_path / "keys", key())))


@pytest.fixture
def guarded(values: LocalDirectory, encrypting: Codec) -> Iterator[CodecServer]:
    """A codec server with keys, and so with a secret."""
    with CodecServer(values, [UI], 0, encrypting, "s3cret" * 8) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("text", ["small", BIG])
async def test_encrypted_payloads_are_shown_to_those_with_the_secret_and_nobody_else(
    guarded: CodecServer, values: LocalDirectory, encrypting: Codec, text: str
) -> None:
    asked = await stored(converter(values, sealing=Encrypting(encrypting.ring)), {"text": text})
    assert text not in json.dumps(asked)
    assert data_of(await asyncio.to_thread(post, guarded, "/decode", asked)) == [{"text": text}]
    address = guarded.address.removesuffix(f"/{guarded.secret}")
    for path in ("/decode", "/wrong/decode", f"/{guarded.secret[:-1]}/decode", f"/x/{guarded.secret}/decode"):
        answer = await asyncio.to_thread(httpx.post, address + path, json=asked, trust_env=False)
        assert (answer.status_code, answer.content) == (403, b"")
    by_header = {"Authorization": f"Bearer {guarded.secret}"}
    answer = await asyncio.to_thread(httpx.post, f"{address}/decode", json=asked, headers=by_header, trust_env=False)
    assert data_of(answer) == [{"text": text}]


async def test_what_the_ui_sends_is_encrypted(guarded: CodecServer, encrypting: Codec) -> None:
    plain = {"payloads": [{"metadata": {"encoding": base64.b64encode(b"json/plain").decode()}, "data": "InlvdSI="}]}
    answer = await asyncio.to_thread(post, guarded, "/encode", plain)
    found = json_format.ParseDict(answer.json(), Payloads())
    assert b"you" not in found.SerializeToString()
    assert [each.data for each in await encrypting.decode(found.payloads)] == [b'"you"']


async def test_a_payload_of_an_unknown_key_is_a_note_that_names_it(
    guarded: CodecServer, values: LocalDirectory, tmp_path: Path
) -> None:
    other = key()
    asked = await stored(converter(values, sealing=Encrypting(live(ring_file(tmp_path / "other", other)))), {"a": 1})
    [shown] = data_of(await asyncio.to_thread(post, guarded, "/decode", asked))
    assert "KEY_MISSING" in shown["notShown"]
    assert other.id in shown["notShown"]


async def test_a_step_s_large_value_is_shown_where_only_its_claim_is_kept(
    codec: CodecServer, values: LocalDirectory
) -> None:
    large = await ValueStore(values).put(json.dumps(BIG))
    asked = await stored(converter(values), {"large": large.model_dump(mode="json"), "duration": 1.0})
    [shown] = data_of(await asyncio.to_thread(post, codec, "/decode", asked))
    assert shown["value"] == BIG


async def test_what_is_small_comes_back_as_it_was(codec: CodecServer, values: LocalDirectory) -> None:
    asked = await stored(converter(values), {"a": 1})
    for path in ("/decode", "/encode"):
        assert data_of(await asyncio.to_thread(post, codec, path, asked)) == [{"a": 1}]


async def test_a_missing_value_is_said_so_and_the_others_are_shown(codec: CodecServer, values: LocalDirectory) -> None:
    asked = await stored(converter(values), BIG)
    for file in values.directory.glob("*/*"):
        file.unlink()
    asked["payloads"] += (await stored(converter(values), 7))["payloads"]
    missing, seven = data_of(await asyncio.to_thread(post, codec, "/decode", asked))
    assert "VALUE_MISSING" in missing["notShown"] or "is not in" in missing["notShown"]
    assert seven == 7


async def test_a_value_no_browser_can_draw_is_named_instead(codec: CodecServer, values: LocalDirectory) -> None:
    asked = await stored(converter(values), "y" * (MAX_SHOWN + 1))
    [shown] = data_of(await asyncio.to_thread(post, codec, "/decode", asked))
    assert "bytes" in shown["notShown"]


def test_only_the_temporal_ui_may_ask_from_a_browser(codec: CodecServer) -> None:
    asked: dict[str, Any] = {"payloads": []}
    assert post(codec, "/decode", asked, Origin=UI).headers["Access-Control-Allow-Origin"] == UI
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example:8234"}):
        answer = post(codec, "/decode", asked, **headers)
        assert answer.status_code == 403
        assert "Access-Control-Allow-Origin" not in answer.headers
    asking = httpx.options(codec.address + "/decode", headers={"Origin": UI}, trust_env=False, timeout=60)
    assert asking.status_code == 204
    assert "X-Namespace" in asking.headers["Access-Control-Allow-Headers"]


@pytest.mark.parametrize(("path", "body", "status"), [("/decode", b"{", 400), ("/", b"{}", 404), ("/decode", b"", 400)])
def test_what_it_cannot_read_is_refused(codec: CodecServer, path: str, body: bytes, status: int) -> None:
    assert post(codec, path, body).status_code == status


@pytest.mark.parametrize("claim", ["../../etc/passwd", "", "A" * 64, "0" * 63])
def test_a_claim_that_names_no_value_reads_nothing(codec: CodecServer, claim: str) -> None:
    reference = Payload(
        metadata={"encoding": b"json/protobuf", "messageType": b"temporal.api.sdk.v1.ExternalStorageReference"},
        data=json.dumps({"driverName": "plans-directory", "claimData": {"sha256": claim}}).encode(),
    )
    asked = json_format.MessageToDict(Payloads(payloads=[reference]))
    [shown] = data_of(post(codec, "/decode", asked))
    assert "notShown" in shown


@pytest_asyncio.fixture
async def own_client(server: Server, settings: Settings) -> AsyncIterator[Client]:
    """A client with the state directory of the test, as commands have it."""
    del server
    yield await connect(settings)


@pytest.mark.slow
async def test_the_temporal_command_shows_a_big_plan_and_a_big_value_through_it(
    temporal_binary: Path, own_client: Client, settings: Settings, workspace: Path, queue: str, server: Server
) -> None:
    (workspace / "big.txt").write_text(BIG)
    steps = [{"id": "r", "tool": "read_file", "args": {"path": "big.txt"}}]
    steps += [{"id": f"s{n}", "tool": "sleep", "args": {"seconds": 0.001}, "notes": "n" * 9_000} for n in range(9)]
    request = {"plan": {"steps": steps}, "options": {"workspace": str(workspace)}}
    async with build(own_client, settings, _tools(), indexed=True):
        await own_client.execute_workflow("PlanWorkflow", request, id=f"plan-{queue}", task_queue=queue)
    plain = await _show(temporal_binary, server, queue)
    assert BIG not in plain
    assert "n" * 9_000 not in plain
    with CodecServer(storage(settings), [], 0) as codec:
        threading.Thread(target=codec.serve_forever, args=(0.05,), daemon=True).start()
        decoded = await _show(temporal_binary, server, queue, "--codec-endpoint", codec.address)
        codec.shutdown()
    assert BIG in decoded
    assert "n" * 9_000 in decoded


def _tools() -> Any:
    from plansurvive.activities.tools.registry import load_tools

    return load_tools(())


async def _show(temporal: Path, server: Server, queue: str, *more: str) -> str:
    """All data in the history as the command prints it, in the clear."""
    process = await asyncio.create_subprocess_exec(
        *(str(temporal), "workflow", "show", "--address", server.address, "--workflow-id", f"plan-{queue}"),
        *("--output", "json", *more),
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "")},
    )
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    return "\n".join(base64.b64decode(data).decode() for data in re.findall(r'"data": *"([^"]+)"', out.decode()))

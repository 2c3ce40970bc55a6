"""http_request against real servers on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from plansurvive.activities.attempt.environment import ToolEnvironment
from plansurvive.activities.network.address_policy import AddressPolicy
from plansurvive.activities.tools.http import MAX_RETRY_AFTER
from tests.activities.attempts import Attempts
from tests.activities.sites import Site, serve
from tests.kit.waiting import until

RETRIED = (408, 409, 425, 429, 500, 502, 503)


@pytest.fixture
def attempts(attempts: Attempts) -> Attempts:
    """Attempts on a worker that allows requests to this machine, where the sites are."""
    return attempts.but(site=ToolEnvironment(addresses=AddressPolicy.of(["127.0.0.0/8", "localhost"])))


@pytest.fixture
def site() -> Iterator[Site]:
    """A site."""
    with serve() as site:
        yield site


@pytest.fixture
def other_site() -> Iterator[Site]:
    """Another site."""
    with serve() as site:
        yield site


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", "hello"),
        ("/json", {"name": "ä", "rows": [1, 2]}),
        ("/problem", []),
        ("/liar", "<html>"),
        ("/latin", "café"),
        ("/binary", "\ufffd\0"),
    ],
)
async def test_the_body_is_the_value_where_it_is_json_and_text_otherwise(
    attempts: Attempts, site: Site, path: str, body: Any
) -> None:
    value = await attempts.but(approved=False).value("http_request", url=site.url + path)
    assert (value["status"], value["body"]) == (200, body)
    assert value["headers"]["content-length"]


async def test_a_body_is_sent_as_text_or_json(attempts: Attempts, site: Site) -> None:
    once = attempts.but(step="s")
    await once.run("http_request", url=site.url, method="POST", body={"a": "ä"}, headers={"X-Mine": "1"})
    await attempts.run(
        "http_request", url=site.url, method="PUT", body="plain ä", headers={"Idempotency-Key": "my own"}
    )
    (post, _, headers, body), (put, _, put_headers, text) = site.asked
    assert (post, json.loads(body), headers["content-type"]) == ("POST", {"a": "ä"}, "application/json")
    assert (headers["x-mine"], headers["idempotency-key"]) == ("1", "plan-p/s")
    assert (put, text.decode(), put_headers["idempotency-key"]) == ("PUT", "plain ä", "my own")


async def test_only_get_and_head_go_unasked(attempts: Attempts, site: Site) -> None:
    asking = attempts.but(approved=False)
    assert (await asking.value("http_request", url=site.url, method="HEAD"))["body"] == ""
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert await asking.code("http_request", url=site.url, method=method) == "APPROVAL_REQUIRED"
    assert [method for method, *_ in site.asked] == ["HEAD"]
    assert await asking.code("http_request", url=site.url, method="get") == "INVALID_ARGS"


@pytest.mark.parametrize(
    ("status", "final"),
    [*((status, True) for status in (400, 401, 404, 410, 422)), *((status, False) for status in RETRIED)],
)
async def test_a_status_of_failure_fails_the_step(attempts: Attempts, site: Site, status: int, final: bool) -> None:
    error = await attempts.error("http_request", url=f"{site.url}/status/{status}")
    assert (error.type, error.non_retryable) == ("HTTP_STATUS", final)
    assert str(status) in error.message
    assert "the reason" in error.message


async def test_the_server_says_when_to_try_again(attempts: Attempts, site: Site) -> None:
    async def wait(text: str) -> float:
        error = await attempts.error("http_request", url=f"{site.url}/status/429/{text.replace(' ', '_')}")
        assert error.next_retry_delay
        return error.next_retry_delay.total_seconds()

    assert await wait("7") == 7
    assert await wait("1e9") == MAX_RETRY_AFTER
    assert await wait("nan") == await wait("soon") == attempts.retry.delay
    assert 80 < await wait(format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)) <= 100
    assert await wait(format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)) < 0.01


async def test_redirects_stay_in_their_scheme_and_give_headers_to_their_origin_only(
    attempts: Attempts, site: Site, other_site: Site
) -> None:
    secret = {"Authorization": "Bearer x", "X-Api-Key": "canary"}
    value = await attempts.value("http_request", url=f"{site.url}/to//json", headers=secret)
    assert value["body"]["rows"] == [1, 2]
    assert site.asked[-1][2]["x-api-key"] == "canary"
    value = await attempts.value("http_request", url=f"{site.url}/to/{other_site.url}/x", headers=secret)
    assert value["body"] == "hello"
    assert not {"authorization", "x-api-key"} & set(other_site.asked[-1][2])
    assert await attempts.code("http_request", url=f"{site.url}/to/https://127.0.0.1/") == "HTTP_STATUS"
    assert await attempts.code("http_request", url=f"{site.url}/to/file:///etc/passwd") == "HTTP_STATUS"
    assert await attempts.code("http_request", url=f"{site.url}/to/loop") == "HTTP_STATUS"
    value = await attempts.value("http_request", url=f"{site.url}/to//json", method="POST")
    assert value["status"] == 302


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "x",
            "/x",
            "file:///etc/passwd",
            "ftp://127.0.0.1/",
            "gopher://x",
            "javascript:1",
            "http://",
            "http:///x",
        ),
        *("https://user:pass@127.0.0.1/", "http://user@127.0.0.1/", "http://127.0.0.1:99999/", "http://127.0.0.1:x/"),
        *("http://127.0.0.1/" + "x" * 9_000, "http://a\nb/", "http://[::1"),
    ],
)
async def test_an_address_must_be_plain_http_or_https(attempts: Attempts, url: str) -> None:
    error = await attempts.error("http_request", url=url)
    assert (error.type, error.non_retryable) == ("INVALID_ARGS", True)
    assert "pass@" not in error.message


async def test_headers_cannot_smuggle_others_in(attempts: Attempts, site: Site) -> None:
    for headers in ({"X": "a\r\nY: b"}, {"X\n": "a"}, {"": "a"}, {"X": "ä\ud800"}):
        assert await attempts.code("http_request", url=site.url, headers=headers) == "INVALID_ARGS"
    assert site.asked == []


async def test_a_server_that_is_not_there_or_breaks_off_may_be_tried_again(attempts: Attempts, site: Site) -> None:
    for url in ("http://127.0.0.1:1/", f"{site.url}/drop", site.url.replace("http", "https")):
        error = await attempts.error("http_request", url=url)
        assert (error.type, error.non_retryable) == ("HTTP_UNREACHABLE", False)


async def test_a_server_that_hangs_is_left_in_time(attempts: Attempts, site: Site) -> None:
    error = await attempts.error("http_request", url=f"{site.url}/hang", timeout=0.2)
    assert (error.type, error.non_retryable) == ("HTTP_TIMEOUT", False)


async def test_a_download_says_how_far_it_is(attempts: Attempts, site: Site) -> None:
    answer = asyncio.create_task(attempts.value("http_request", url=f"{site.url}/half/"))
    beat = await until(lambda: next(iter(attempts.beats), None), "it sends a heartbeat")
    assert (beat["line"], beat["progress"]) == ("4 of 8 bytes", 50)
    site.stop.set()
    assert (await answer)["body"] == "halfrest"


async def test_too_long_an_answer_is_refused(attempts: Attempts, site: Site) -> None:
    assert await attempts.code("http_request", url=f"{site.url}/big") == "OUTPUT_LIMIT"


async def test_proxies_of_the_environment_are_not_used(
    attempts: Attempts, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert (await attempts.value("http_request", url=site.url))["status"] == 200


async def test_a_body_that_is_compressed_more_than_once_is_not_unpacked(attempts: Attempts, site: Site) -> None:
    assert (await attempts.value("http_request", url=f"{site.url}/packed/1"))["body"] == "hello"  # control
    assert await attempts.code("http_request", url=f"{site.url}/packed/2") == "OUTPUT_LIMIT"


async def test_a_body_is_read_by_sets_of_characters_only(attempts: Attempts, site: Site) -> None:
    text = "a-" + "abcdefgh" * 5
    names = ("punycode", "idna", "undefined", "unicode_escape", "rot13", "zlib", "x" * 1_000)
    for name in names:
        assert (await attempts.value("http_request", url=f"{site.url}/charset/{name}"))["body"] == text, name
    value = await attempts.value("http_request", url=f"{site.url}/charset/utf-16-le")  # control
    assert value["body"] == text.encode().decode("utf-16-le")


async def test_a_request_names_no_other_host_than_its_url(attempts: Attempts, site: Site) -> None:
    for name in ("Host", "host", "HOST", " Host", "Host\t"):
        code = await attempts.code("http_request", url=site.url, headers={name: "other.example"})
        assert code == "INVALID_ARGS", name
    assert site.asked == []
    await attempts.value("http_request", url=site.url, headers={"X-Host": "other.example"})  # control
    assert site.asked[0][2]["host"] == f"127.0.0.1:{site.port}"


async def test_a_redirect_to_a_host_that_is_none_is_told(attempts: Attempts, site: Site) -> None:
    error = await attempts.error("http_request", url=f"{site.url}/to/http://xn--/")
    assert (error.type, error.non_retryable) == ("HTTP_STATUS", True)

"""PLANS_HTTP_ALLOW: which entries there are, and that no URL is taken for another host than it leads to."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plansurvive.plans.model.receivers import Receiver, receives

LIST = ["api.example.com", "*.trusted.example", "10.0.0.0/8", "127.0.0.1:8080", "[::1]:9000", "host:8443", "fd00::/8"]


@pytest.mark.parametrize(
    "url",
    [
        *("http://api.example.com/", "https://API.example.com./x?y=1", "http://api.example.com:81", "http://10.1.2.3/x"),
        *("https://a.trusted.example/", "http://a.b.trusted.example/?q", "http://127.0.0.1:8080/", "http://[::1]:9000/x"),
        *("https://host:8443/x", "http://[fd00::7]/", "http://api.example.com#x", "http://api.example.com?{{x}}"),
    ],
)  # fmt: skip
def test_a_url_of_a_listed_host_is_one_that_receives(url: str) -> None:
    assert receives(url, LIST)


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com/", "http://trusted.example/", "http://xtrusted.example/", "http://127.0.0.1/"),
        "https://host/",
        *("http://api.example.com.evil.com/", "http://evil.com/api.example.com", "http://evil.com#@api.example.com/"),
        *("http://api.example.com@evil.com/", "http://api.example.com\\@evil.com/", "http://evil.com\\@api.example.com/"),
        *("http://api.example.com%2f@evil.com/", "http://api.example.com%00.evil.com/", "", None, 5),
        *("http://api.example.com\t.evil.com", " http://api.example.com/", "ftp://api.example.com/"),
        *("//api.example.com/", "http:/api.example.com/"),
        *("http://api.example.com\n.evil.com/", "http://a\u2024pi.example.com/", "http://{{x}}.trusted.example/"),
        *("http://{{x}}/", "$url", "http://11.0.0.1/", "http://012.0.0.1/", "http://[::1]/"),
        "http://api.example.com:80x/",
    ],
)  # fmt: skip
def test_any_other_url_is_not(url: object) -> None:
    assert not receives(url, LIST)


NO_HOSTS = [
    "a b",
    "http://x",
    "x/y",
    "x:0",
    "x:65536",
    "x:y",
    "*",
    "*.",
    "a.*",
    "-x",
    "1.2.3.4.5",
    "300.1.1.1",
    "é",
    "",
]


@pytest.mark.parametrize("entry", [*NO_HOSTS, "", "x@y"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"is not a host|out of range|is a URL"):
        Receiver.of(entry)


def test_only_an_entry_for_one_host_with_its_port_is_exact() -> None:
    exact = ["host:80", "127.0.0.1:80", "[::1]:80"]
    assert all(Receiver.of(entry).is_exact for entry in exact)
    assert not any(
        Receiver.of(entry).is_exact for entry in ("host", "*.example.com:80", "127.0.0.0/8", "::1", "10.0.0.0/8:80")
    )


PIECES = [
    "http://",
    "https://",
    "api.example.com",
    "evil.com",
    "@",
    ":",
    "/",
    "\\",
    "?",
    "#",
    "%2f",
    "80",
    "[",
    "]",
    ".",
]


@given(st.lists(st.sampled_from(PIECES), max_size=7))
def test_every_parser_reads_a_listed_host_in_a_url_that_receives(pieces: list[str]) -> None:
    url = "http://" + "".join(pieces)
    if receives(url, ["api.example.com"]):
        assert httpx.URL(url).host.removesuffix(".") == "api.example.com"
        assert (urlsplit(url).hostname or "").removesuffix(".") == "api.example.com"

"""Which addresses an LLM endpoint may have (FAULTS T10, 161)."""

from __future__ import annotations

import pytest

from plansurvive.plans.llm.endpoint import endpoint_problem, is_loopback, origin_of


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "https://llm.example.com:8443/openai/v1/",
        "https://10.0.0.7/v1",
        "https://llm_gateway/v1",
        "http://localhost:11434/v1",
        "http://127.0.0.1:8080/v1",
        "http://127.8.9.1/v1",
        "http://[::1]:8080/v1",
        "http://[::ffff:127.0.0.1]:8080/v1",
    ],
)
def test_https_anywhere_and_http_on_this_machine_are_fine(url: str) -> None:
    assert endpoint_problem(url) == ""


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com/v1",
        "file:///etc/passwd",
        "ftp://example.com/v1",
        "javascript:alert(1)",
        "https://",
        "https:///v1",
        "https://user:pass@example.com/v1",
        "https://key@example.com/v1",
        "https://example.com@evil.example/v1",
        "http://example.com/v1",
        "http://10.0.0.7/v1",
        "http://localhost.evil.example/v1",
        "http://127.0.0.1.evil.example/v1",
        "http://169.254.169.254/latest/meta-data",
        "https://169.254.169.254/v1",
        "http://2852039166/v1",
        "https://2852039166/v1",
        "https://0xA9FEA9FE/v1",
        "https://0251.0376.0251.0376/v1",
        "https://169.254.43518/v1",
        "https://[::ffff:169.254.169.254]/v1",
        "https://[fd00:ec2::254]/v1",
        "https://[fe80::1]/v1",
        "https://metadata.google.internal/v1",
        "https://100.100.100.200/v1",
        "http://2130706433:11434/v1",
        "http://0.0.0.0:8080/v1",
        "https://224.0.0.1/v1",
        "https://example.com:0/v1",
        "https://example.com:99999/v1",
        "https://example.com/v1?api-key=1",
        "https://example.com/v1#part",
        "https://example.com\\@evil.example/v1",
        "https://exam ple.com/v1",
        "https://example.com/v1\n",
        "https://ex\u0430mple.com/v1",
        "https://-example.com/v1",
        "https://[::1/v1",
        "https://example.com/" + "x" * 2_000,
    ],
)
def test_addresses_that_hide_leak_or_lead_elsewhere_are_refused_with_a_reason(url: str) -> None:
    problem = endpoint_problem(url)
    assert len(problem) > 20
    assert "pass@" not in problem


def test_this_machine_is_known_in_all_its_spellings() -> None:
    assert all(is_loopback(f"http://{host}/") for host in ("localhost", "127.0.0.1", "[::1]", "127.255.0.3"))
    assert not any(is_loopback(f"http://{host}/") for host in ("localhost.example.com", "10.0.0.1", "[::2]"))


def test_messages_name_the_origin_only() -> None:
    assert origin_of("https://a:b@example.com:8443/v1/x") == "https://example.com:8443"

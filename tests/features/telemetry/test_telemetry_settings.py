"""Settings of telemetry: off by default, addresses of this machine unless said otherwise, prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.features.telemetry.connection import collector_secrets, variables
from plansurvive.features.telemetry.settings import TelemetrySettings
from plansurvive.runtime.settings import SettingError, Settings


def read(tmp_path: Path, **variables: str) -> Settings:
    return Settings.read({"HOME": str(tmp_path), **variables})


def test_all_telemetry_is_off_by_default(tmp_path: Path) -> None:
    settings = read(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:4318").of(TelemetrySettings)
    assert (settings.otel, settings.metrics, settings.log) == (False, None, "text")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("9464", "127.0.0.1:9464"),
        ("127.0.0.1:9464", "127.0.0.1:9464"),
        ("0.0.0.0:9464", "0.0.0.0:9464"),
        ("[::1]:9464", "[::1]:9464"),
    ],
)
def test_metrics_are_served_on_this_machine_unless_another_address_is_named(
    given: str, address: str, tmp_path: Path
) -> None:
    assert read(tmp_path, PLANS_METRICS=given).of(TelemetrySettings).metrics == address


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("METRICS", "0"), ("METRICS", "65536"), ("METRICS", "host"), ("METRICS", "127.0.0.1:0"), ("METRICS", "a b:1"),
        ("METRICS", "::1:9464"), ("LOG", "xml"), ("LOG_LEVEL", "loud"), ("OTEL", "perhaps"), ("LLM_PRICES", "gpt-5"),
        ("LLM_PRICES", "gpt-5=1"), ("LLM_PRICES", "gpt-5=1/-1"), ("LLM_PRICES", "gpt-5=1/2,x"),
    ],
)  # fmt: skip
def test_an_unusable_value_is_refused_with_the_name_of_its_variable(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        read(tmp_path, **{f"PLANS_{name}": text})
    assert caught.value.code == f"BAD_SETTING:PLANS_{name}"


def test_a_request_costs_what_the_longest_name_of_its_model_says(tmp_path: Path) -> None:
    settings = read(tmp_path, PLANS_LLM_PRICES="gpt-5=1.25/10, gpt-5-mini=0.25/2")
    assert settings.cost_of("gpt-5", 1_000_000, 100_000) == 2.25
    assert settings.cost_of("gpt-5-mini-2026-01-01", 1_000_000, 1_000_000) == 2.25
    assert settings.cost_of("gpt-5-2026-01-01", 1_000_000, 0) == 1.25
    assert settings.cost_of("gpt-50", 1, 1) is None


def test_a_worker_with_another_collector_is_another_worker(tmp_path: Path) -> None:
    environ = {"OTEL_SERVICE_NAME": "a", "PATH": "/bin"}
    assert variables(read(tmp_path, PLANS_OTEL="on"), environ) == {"OTEL_SERVICE_NAME": "a"}
    assert variables(read(tmp_path), environ) == {}


def test_the_key_of_a_collector_is_a_secret_as_it_is_written_and_as_it_is_sent() -> None:
    environ = {"OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20abcdefgh123,x-team=blue"}
    found = set(collector_secrets(environ))
    assert {"Bearer abcdefgh123", "abcdefgh123", "blue"} <= found
    assert collector_secrets({}) == []

"""Settings of the LLM: bad ones refused by name, the key never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from plansurvive.runtime.settings import SettingError, Settings

CANARY = "sk-canary-4711-do-not-show"


def read(tmp_path: Path, **variables: str) -> Settings:
    return Settings.read({"HOME": str(tmp_path), **variables})


def test_without_variables_the_endpoint_is_openais_and_there_is_no_key(tmp_path: Path) -> None:
    settings = read(tmp_path, OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert settings.openai_base_url == "https://api.openai.com/v1"
    assert (settings.openai_api_key, settings.model, settings.llm_timeout) == (None, None, 120.0)


def test_the_key_is_in_no_text_made_of_the_settings(tmp_path: Path) -> None:
    settings = read(tmp_path, OPENAI_API_KEY=CANARY)
    shown = (repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json())
    assert not any("canary" in text for text in shown)
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == CANARY


@pytest.mark.parametrize("key", [f"{CANARY}\n", f"{CANARY} x", f"{CANARY}\u20ac", CANARY * 500])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingError) as caught:
        read(tmp_path, OPENAI_API_KEY=key)
    assert caught.value.code == "BAD_SETTING:OPENAI_API_KEY"
    assert "canary" not in caught.value.message


@pytest.mark.parametrize("url", ["file:///x", "https://user:canary@example.com/v1", "http://example.com/v1"])
def test_an_unsafe_endpoint_is_refused_by_name(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingError) as caught:
        read(tmp_path, OPENAI_BASE_URL=url)
    assert caught.value.code == "BAD_SETTING:OPENAI_BASE_URL"
    assert "canary" not in caught.value.message


@pytest.mark.parametrize("text", ["0", "-1", "fast", "inf", "nan", "1801"])
def test_a_time_limit_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError) as caught:
        read(tmp_path, PLANS_LLM_TIMEOUT=text)
    assert caught.value.code == "BAD_SETTING:PLANS_LLM_TIMEOUT"


def test_a_worker_started_with_these_settings_gets_key_and_endpoint(tmp_path: Path) -> None:
    settings = read(tmp_path, OPENAI_API_KEY=CANARY, OPENAI_BASE_URL="http://localhost:1/v1", PLANS_LLM_TIMEOUT="7")
    assert Settings.read(settings.as_environ()) == settings
    assert settings.with_flags(grace="3").openai_api_key == settings.openai_api_key

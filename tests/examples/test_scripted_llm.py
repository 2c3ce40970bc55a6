"""The scripted LLM: a real server that plays its script, streams, refuses, and tells what it did not expect."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from examples.scripted_llm.script import Script, ScriptError
from examples.scripted_llm.server import ScriptedLlm

ROOT = Path(__file__).parent.parent.parent


def ask(llm: ScriptedLlm, text: str, key: str = "", **more: Any) -> httpx.Response:
    body = {"model": "demo", "messages": [{"role": "user", "content": text}], **more}
    headers = {"Idempotency-Key": key} if key else {}
    return httpx.post(f"{llm.url}/chat/completions", json=body, headers=headers, trust_env=False, timeout=60)


def said(response: httpx.Response) -> str:
    content: str = response.json()["choices"][0]["message"]["content"]
    return content


def test_the_first_exchange_that_fits_and_is_not_used_up_answers() -> None:
    exchanges = [
        {"when": "red", "reply": {"text": "1"}},
        {"when": "/bl.e/", "reply": {"text": "2"}, "times": 2},
        {"reply": {"text": "3"}, "times": 0},
    ]
    with ScriptedLlm(Script.of(exchanges)) as llm:
        asked = ("blue", "red", "red", "blae", "blue", "green")
        assert [said(ask(llm, text)) for text in asked] == ["2", "1", "3", "2", "3", "3"]
        assert (llm.play.left, llm.play.unexpected) == ([], [])


def test_what_is_not_in_the_script_fails_loudly_and_once() -> None:
    with ScriptedLlm(Script.of([{"name": "later", "when": "x", "reply": {"text": "1"}}])) as llm:
        response = ask(llm, "something else")
        assert (response.status_code, response.headers["x-should-retry"]) == (500, "false")
        assert "something else" in response.text
        shown = httpx.get(llm.url.replace("/v1", "/_left"), trust_env=False).json()
        assert shown["left"] == ["later"]
        assert len(shown["unexpected"]) == 1


def test_a_listed_script_is_played_in_its_order() -> None:
    exchanges = [{"when": "one", "reply": {"text": "1"}}, {"when": "two", "reply": {"text": "2"}}]
    with ScriptedLlm(Script.of({"order": "listed", "exchanges": exchanges})) as llm:
        assert ask(llm, "two").status_code == 500
        assert [said(ask(llm, text)) for text in ("one", "two")] == ["1", "2"]


def test_a_request_that_comes_again_gets_the_same_answer() -> None:
    exchanges = [{"reply": {"status": 503}}, {"reply": {"text": "1"}}, {"reply": {"text": "2"}}]
    with ScriptedLlm(Script.of(exchanges)) as llm:
        assert ask(llm, "x", "k").status_code == 503
        assert [said(ask(llm, "x", key)) for key in ("k", "k", "l", "k")] == ["1", "1", "2", "1"]


def test_exchanges_may_ask_for_a_schema_or_the_last_message() -> None:
    exchanges = [
        {"when": {"schema": "plan"}, "reply": {"text": "a plan"}},
        {"when": {"last": "hi"}, "reply": {"text": "you said {{last_user}}"}},
    ]
    with ScriptedLlm(Script.of(exchanges)) as llm:
        assert said(ask(llm, "hi there")) == "you said hi there"
        form = {"type": "json_schema", "json_schema": {"name": "plan", "schema": {}}}
        assert said(ask(llm, "hi", response_format=form)) == "a plan"


def test_key_model_and_response_format_are_refused_as_endpoints_do() -> None:
    script = {"key": "sk-1", "model": "demo", "accepts": [], "exchanges": [{"reply": {"text": "1"}}]}
    with ScriptedLlm(Script.of(script)) as llm:
        assert ask(llm, "x").status_code == 401
        client = openai.OpenAI(api_key="sk-1", base_url=llm.url, max_retries=0)
        assert [model.id for model in client.models.list()] == ["demo"]
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="other", messages=[])
        with pytest.raises(openai.BadRequestError, match="response_format"):
            client.chat.completions.create(model="demo", messages=[], response_format={"type": "json_object"})
        assert client.chat.completions.create(model="demo", messages=[]).choices[0].message.content == "1"
        assert "sk-1" not in httpx.get(llm.url.replace("/v1", "/_requests"), trust_env=False).text
        client.close()


def test_answers_can_be_streamed_with_usage() -> None:
    reply = {"text": "a" * 100, "tool_calls": [{"tool": "read_file", "args": {"path": "x"}}]}
    with ScriptedLlm(Script.of([{"reply": reply}])) as llm:
        client = openai.OpenAI(api_key="k", base_url=llm.url, max_retries=0)
        chunks = list(
            client.chat.completions.create(
                model="demo", messages=[], stream=True, stream_options={"include_usage": True}
            )
        )
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        assert "".join(delta.content or "" for delta in deltas) == "a" * 100
        calls = [call for delta in deltas for call in delta.tool_calls or []]
        assert json.loads(calls[0].function.arguments) == {"path": "x"}  # type: ignore[union-attr, arg-type]
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 25
        client.close()


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ([{"replay": {}}], "exchanges.0.replay"),
        ([{"reply": {"fault": "boom"}}], "exchanges.0.reply.fault"),
        ([{"when": "/(/"}], "exchange 1"),
        ({"order": "any", "exchanges": []}, "order"),
        ("text", "script"),
    ],
)
def test_a_mistake_in_a_script_is_told_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(ScriptError, match=place):
        Script.of(value)


def test_it_runs_as_a_program_until_it_is_told_to_stop(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("model: demo\nexchanges:\n  - when: release notes\n    reply: {json: {steps: []}}\n")
    command = [sys.executable, "-m", "examples.scripted_llm", str(script), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip().removeprefix("OPENAI_BASE_URL=")
            body = {"model": "demo", "messages": [{"role": "user", "content": "write release notes"}]}
            answer = httpx.post(f"{url}/chat/completions", json=body, trust_env=False, timeout=60)
            assert said(answer) == '{"steps": []}'
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_bad_script_file_is_refused_with_exit_code_2(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("exchanges: [{times: -1}]")
    command = [sys.executable, "-m", "examples.scripted_llm", str(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "exchanges.0.times" in done.stderr

"""The activity `ask_llm` over real HTTP: sixty and more answers classified, bounded, and free of the key."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from pathlib import Path

import pytest

from plansurvive.activities.llm.model import is_strict
from plansurvive.plans.llm.request import LlmAnswer, LlmRequest
from plansurvive.plans.model import Retry
from tests.activities.asking import CANARY, SCHEMA, asking, request
from tests.activities.llm_answers import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:50])
async def test_every_kind_of_answer_ends_as_it_must_within_its_calls(
    case: Case, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with asking([{"reply": case.reply, "times": 0}], tmp_path, timeout=0.3 if "hang" in case.name else 20) as scene:
        end = await scene.until_final()
        ends = ("problem" if end.problem else "ok") if isinstance(end, LlmAnswer) else end.type
        text = end.problem if isinstance(end, LlmAnswer) else end.message
        assert (ends, len(scene.llm.bodies)) == (case.ends, case.calls)
        assert case.says in text
        assert len(text) < 2_000
        leaving = [repr(end), str(scene.failures), *(str(each.details) for each in scene.failures), str(scene.beats)]
        assert not [each for each in (*leaving, caplog.text) if "canary" in each]


def test_there_are_sixty_cases_and_more() -> None:
    assert len(CASES) >= 60


async def test_an_answer_comes_with_its_object_usage_model_and_mode(tmp_path: Path) -> None:
    reply = {"json": {"a": 1}, "usage": {"prompt": 11, "completion": 7}}
    with asking([{"reply": reply}], tmp_path) as scene:
        answer = await scene.once()
        assert (answer.text, answer.problem) == ('{"a": 1}', "")
        assert answer.usage.model_dump(by_alias=True) == {
            "calls": 1,
            "promptTokens": 11,
            "completionTokens": 7,
            "totalTokens": 18,
        }
        assert (answer.model, answer.mode, answer.finish_reason, answer.attempt) == ("demo", "json_schema", "stop", 1)
        form = scene.llm.bodies[0]["response_format"]["json_schema"]
        assert form == {"name": "plan", "schema": SCHEMA, "strict": True}
        assert scene.llm.play.seen[0].headers["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize(
    ("accepts", "mode", "calls"),
    [(["json_schema"], "json_schema", 1), (["json_object"], "json_object", 2), ([], "text", 3)],
)
async def test_what_an_endpoint_takes_is_found_out_once(
    accepts: list[str], mode: str, calls: int, tmp_path: Path
) -> None:
    script = {"accepts": accepts, "exchanges": [{"reply": {"json": {"a": 1}}, "times": 2}]}
    with asking(script, tmp_path) as scene:
        first = await scene.once()
        assert (first.mode, len(scene.llm.bodies)) == (mode, calls)
        await scene.once(request(key="another"))
        assert len(scene.llm.bodies) == calls + 1
        last = scene.llm.bodies[-1]["messages"][-1]["content"]
        assert ("JSON Schema" in last) == (mode != "json_schema")


async def test_a_request_that_is_wrong_in_every_mode_teaches_nothing(tmp_path: Path) -> None:
    replies = [{"reply": {"status": 400, "error": "bad"}, "times": 3}, {"reply": {"json": {"a": 1}}}]
    with asking(replies, tmp_path) as scene:
        assert (await scene.failure()).type == "LLM_REQUEST"
        assert (await scene.once()).mode == "json_schema"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({}, 2.0), ({"Retry-After": "7"}, 7.0), ({"retry-after-ms": "1500"}, 1.5), ({"Retry-After": "soon"}, 2.0)],
)
async def test_a_busy_endpoint_says_when_the_next_attempt_is(
    headers: dict[str, str], wait: float, tmp_path: Path
) -> None:
    replies = [{"reply": {"status": 429, "headers": headers}}, {"reply": {"json": {"a": 1}}}]
    with asking(replies, tmp_path, retry=Retry(attempts=3, delay=2.0, factor=2.0)) as scene:
        answer = await scene.until_final()
        assert [failure.next_retry_delay for failure in scene.failures] == [timedelta(seconds=wait)]
        assert isinstance(answer, LlmAnswer)
        assert answer.attempt == 2
        assert {"errors": 1} in [{"errors": beat["errors"]} for beat in scene.beats]


async def test_what_a_failed_call_took_is_told(tmp_path: Path) -> None:
    reply = {"text": "cut", "finish": "length", "usage": {"prompt": 5, "completion": 9}}
    with asking([{"reply": reply}], tmp_path) as scene:
        details = (await scene.failure()).details[0]
        assert details["usage"]["totalTokens"] == 14
        assert details["code"] == "LLM_TRUNCATED"


async def test_an_endpoint_that_counts_no_tokens_is_estimated(tmp_path: Path) -> None:
    body = json.dumps({"choices": [{"message": {"content": '{"a": 11111}'}}], "usage": {"total_tokens": -5}})
    with asking([{"reply": {"body": body}}], tmp_path) as scene:
        answer = await scene.once(request("x" * 400))
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (102, 3)
        assert answer.usage.total_tokens == 105


async def test_a_key_is_missed_only_when_a_remote_endpoint_is_asked(tmp_path: Path) -> None:
    replies = [{"reply": {"json": {"a": 1}}}]
    with asking(replies, tmp_path, key=None) as scene:
        assert (await scene.once()).text == '{"a": 1}'
    with asking(replies, tmp_path, key=None, base_url="https://llm.invalid/v1") as scene:
        failure = await scene.failure()
        assert failure.type == "LLM_NO_KEY"
        assert "OPENAI_API_KEY" in failure.message
        assert "OPENAI_BASE_URL" in failure.message


async def test_a_model_must_be_named_by_the_worker(tmp_path: Path) -> None:
    with asking([{"reply": {"json": {"a": 1}}}], tmp_path, model=None) as scene:
        failure = await scene.failure()
        assert (failure.type, "PLANS_MODEL" in failure.message) == ("LLM_MODEL", True)


async def test_an_unsafe_endpoint_is_never_asked(tmp_path: Path) -> None:
    with asking([], tmp_path, base_url="http://llm.invalid/v1") as scene:
        assert (await scene.failure()).type == "LLM_REQUEST"


async def test_an_endpoint_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    with asking([], tmp_path) as closed:
        gone = closed.llm.url
    with asking([], tmp_path, base_url=gone) as scene:
        failure = await scene.failure()
        assert (failure.type, "cannot be reached" in failure.message) == ("LLM_UNAVAILABLE", True)


async def test_redirects_are_not_followed_and_take_no_key_along(tmp_path: Path) -> None:
    with asking([], tmp_path) as thief:
        reply = {"status": 307, "headers": {"Location": f"{thief.llm.url}/chat/completions"}}
        with asking([{"reply": reply}], tmp_path) as scene:
            assert (await scene.failure()).type == "LLM_UNAVAILABLE"
        assert thief.llm.play.seen == []


async def test_proxies_of_the_environment_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asking([], tmp_path) as thief:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, thief.llm.url)
        with asking([{"reply": {"json": {"a": 1}}}], tmp_path) as scene:
            await scene.once()
        assert thief.llm.play.seen == []


async def test_a_request_without_a_message_is_refused(tmp_path: Path) -> None:
    with asking([{"reply": {"json": {"a": 1}}}], tmp_path) as scene:
        assert (await scene.failure(request(messages=[]))).type == "LLM_REQUEST"


async def test_a_request_of_an_older_workflow_is_answered_with_the_text_alone(tmp_path: Path) -> None:
    dropped = {"model": "mine", "maxTokens": 5, "timeout": 9.0, "retry": {"attempts": 2}, "messagesLarge": None}
    recorded = LlmRequest.model_validate(request().model_dump() | dropped)
    with asking([{"reply": {"json": {"a": 1}}}], tmp_path) as scene:
        answer = await scene.once(recorded)
        assert (answer.text, answer.parsed, answer.problems) == ('{"a": 1}', None, [])
        assert scene.llm.bodies[0]["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_the_key_is_taken_out_of_what_is_sent_too(tmp_path: Path) -> None:
    with asking([{"reply": {"json": {"a": 1}}}], tmp_path) as scene:
        await scene.once(request(f"the file says {CANARY}"))
        assert "canary" not in json.dumps(scene.llm.bodies)


async def test_a_key_the_worker_does_not_know_is_seen_so_the_search_for_it_finds_something(tmp_path: Path) -> None:
    with asking([{"reply": {"json": {"a": CANARY}}}], tmp_path, key=None) as scene:
        assert "canary" in (await scene.once()).text


async def test_a_placeholder_for_a_key_is_no_secret(tmp_path: Path) -> None:
    with asking([{"reply": {"json": {"a": "none"}}}], tmp_path, key="none") as scene:
        assert (await scene.once()).text == '{"a": "none"}'


async def test_every_attempt_of_a_call_carries_the_same_idempotency_key(tmp_path: Path) -> None:
    replies = [{"reply": {"status": 500}}, {"reply": {"json": {"a": 1}}}]
    with asking(replies, tmp_path) as scene:
        await scene.until_final()
        assert {seen.headers["idempotency-key"] for seen in scene.llm.play.seen} == {"plan-p/llm-1:json_schema"}


def test_only_a_closed_schema_with_every_field_required_is_strict() -> None:
    assert is_strict(SCHEMA)
    assert not is_strict({})
    assert not is_strict(SCHEMA | {"required": []})
    assert not is_strict(SCHEMA | {"properties": {"a": {"type": "object"}}})
    assert not is_strict({"type": "object", "properties": {}, "required": []})

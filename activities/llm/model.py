"""The LLM of a worker: one endpoint, one key, one model, and a cache of the response formats the endpoint supports.

A request is sent with a JSON schema as response format first; if the endpoint rejects that (400, 422), with JSON object
as the format and the schema in the message, then as plain text. The format that worked is cached per model and schema
until the worker exits. If even plain text is rejected, the request itself is invalid, and nothing is cached.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from plansurvive.activities.llm.client import KEPT_CHARACTERS, checked, post, read_completion
from plansurvive.activities.llm.errors import LlmError, Reply, failure_of
from plansurvive.activities.values.redaction import Secrets, Seen
from plansurvive.plans.llm.endpoint import OPENAI, endpoint_problem, is_loopback, origin_of
from plansurvive.plans.llm.request import ChatMessage, LlmAnswer, LlmRequest, Mode

MODES: tuple[Mode, ...] = ("json_schema", "json_object", "text")
"""Strictest first."""
DEFAULT_TIMEOUT = 120.0
_FORMAT_REFUSED = (400, 422)


@dataclass
class LanguageModel:
    """An endpoint, its key and the model. Has no state of any run."""

    base_url: str = OPENAI
    api_key: SecretStr | None = None
    model: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    """Seconds for one request, including the fallbacks to other response formats."""
    masked: Sequence[Seen] = ()
    """What features have masked in texts."""
    _modes: dict[tuple[str, str], Mode] = field(default_factory=dict, init=False, repr=False)

    @property
    def secrets(self) -> Secrets:
        """The API key and the values of features, to be redacted."""
        return Secrets([self.api_key], self.masked)

    def check(self, where: str = " on the worker") -> None:
        """Raise LlmError LLM_NO_KEY, LLM_MODEL or LLM_REQUEST if the settings, of what runs `where`, cannot work."""
        problem = endpoint_problem(self.base_url)
        if problem:
            raise LlmError("LLM_REQUEST", f"OPENAI_BASE_URL cannot be used: {problem}")
        if self.api_key is None and not is_loopback(self.base_url):
            raise LlmError(
                "LLM_NO_KEY",
                f"no key for {origin_of(self.base_url)}: set OPENAI_API_KEY{where}, or OPENAI_BASE_URL to an"
                " endpoint on this machine, which needs none",
            )
        if not self.model:
            raise LlmError("LLM_MODEL", f"no model is set; set PLANS_MODEL{where}")

    async def ask(self, request: LlmRequest, messages: Sequence[ChatMessage]) -> LlmAnswer:
        """The answer to `messages`. Raises LlmError, with secrets redacted from all its texts."""
        try:
            self.check()
            async with asyncio.timeout(self.timeout) as timer:
                return await self._ask(request, messages)
        except TimeoutError:
            if not timer.expired():
                raise
            raise LlmError(
                "LLM_UNAVAILABLE",
                f"{origin_of(self.base_url)} did not answer within {self.timeout:g} seconds (PLANS_LLM_TIMEOUT)",
                retryable=True,
            ) from None
        except LlmError as error:
            error.message = self.secrets.out_of_message(error.message)
            error.args = (error.message,)
            error.said = self.secrets.out_of(error.said)[:KEPT_CHARACTERS]
            raise

    async def _ask(self, request: LlmRequest, messages: Sequence[ChatMessage]) -> LlmAnswer:
        model = self.model or ""
        known = (model, request.schema_name)
        started = time.monotonic()
        for mode in MODES[MODES.index(self._modes.get(known, MODES[0])) :]:
            reply = await self._post(_body(model, messages, request, mode), request.key)
            if reply.status == 200:
                self._modes[known] = mode
                return self._answer(reply, model, messages, mode, started)
            failure = failure_of(reply, origin_of(self.base_url), model)
            if reply.status not in _FORMAT_REFUSED or failure.code != "LLM_REQUEST":
                raise failure
        raise failure

    async def _post(self, body: dict[str, Any], call: str) -> Reply:
        key = self.api_key.get_secret_value() if self.api_key else ""
        form = body.get("response_format", {}).get("type", "text")
        return await post(self.base_url, key, body, f"{call}:{form}" if call else "", self.timeout)

    def _answer(
        self, reply: Reply, model: str, messages: Sequence[ChatMessage], mode: Mode, started: float
    ) -> LlmAnswer:
        said = read_completion(reply.content, model, sum(len(message.content) for message in messages))
        text, problem = checked(said)
        return LlmAnswer(
            text=self._clean(text, is_json=not problem),
            problem=self.secrets.out_of(problem),
            usage=said.usage,
            model=self.secrets.out_of(said.model),
            finish_reason=self.secrets.out_of(said.finish_reason),
            mode=mode,
            duration=round((time.monotonic() - started) * 1000, 3),
        )

    def _clean(self, text: str, *, is_json: bool) -> str:
        if not is_json:
            return self.secrets.out_of(text)
        return json.dumps(self.secrets.out_of_value(json.loads(text)), ensure_ascii=False)


def _body(model: str, messages: Sequence[ChatMessage], request: LlmRequest, mode: Mode) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "messages": [each.model_dump() for each in messages]}
    schema = request.json_schema
    if mode == "json_schema":
        form = {"name": request.schema_name, "schema": schema, "strict": is_strict(schema)}
        return body | {"response_format": {"type": "json_schema", "json_schema": form}}
    body["messages"] = _with_instruction(body["messages"], schema)
    return body | ({"response_format": {"type": "json_object"}} if mode == "json_object" else {})


def _with_instruction(messages: list[dict[str, Any]], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Append the required answer format to the messages, at the end so that prompt caching of the beginning works."""
    shape = f" that fits this JSON Schema:\n{json.dumps(schema, ensure_ascii=False)}" if schema else "."
    text = f"Answer with one JSON object and nothing else{shape}"
    if messages and messages[-1]["role"] == "user":
        return [*messages[:-1], {"role": "user", "content": f"{messages[-1]['content']}\n\n{text}"}]
    return [*messages, {"role": "user", "content": text}]


def is_strict(schema: Any) -> bool:
    """Whether the schema qualifies for strict mode: no object allows additional properties, every field is required."""
    if isinstance(schema, list):
        return all(is_strict(each) for each in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(schema.get("required", [])) != names:
            return False
    return bool(schema) and all(is_strict(each) for name, each in schema.items() if name not in ("enum", "const"))

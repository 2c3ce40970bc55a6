"""Asks a scripted LLM as a worker would, without a Temporal server: one attempt, or all that its errors allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from examples.scripted_llm.script import Script
from examples.scripted_llm.server import ScriptedLlm
from plansurvive.activities.lifecycle.ask_llm import AskLlm
from plansurvive.activities.llm.model import LanguageModel
from plansurvive.features.worker_features import answer_kinds, composers
from plansurvive.plans.llm.request import ChatMessage, LlmAnswer, LlmRequest
from plansurvive.plans.model import Retry, ToolSpec
from plansurvive.runtime.storage import LocalDirectory
from plansurvive.runtime.value_store import ValueStore

QUICKLY = Retry(attempts=3, delay=0.01, factor=1.0)
CANARY = "sk-canary-4711-do-not-show"
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


def request(text: str = "hello", **changes: Any) -> LlmRequest:
    """A question."""
    given = {
        "purpose": "plan",
        "messages": [ChatMessage(role="system", content="Be brief."), ChatMessage(role="user", content=text)],
        "schema_name": "plan",
        "json_schema": SCHEMA,
        "key": "plan-p/llm-1",
    }
    return LlmRequest(**(given | changes))


@dataclass
class Asking:
    """A scripted LLM, and who asks it."""

    llm: ScriptedLlm
    ask: AskLlm
    failures: list[ApplicationError] = field(default_factory=list)
    beats: list[Any] = field(default_factory=list)

    async def once(self, asked: LlmRequest | None = None, errors: int = 0) -> LlmAnswer:
        """The answer of one attempt, after so many failed ones. Raises ApplicationError."""
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, heartbeat_details=[{"errors": errors}] if errors else [])
        environment.on_heartbeat = self.beats.append
        answer: LlmAnswer = await environment.run(self.ask.ask_llm, asked or request())
        return answer

    async def until_final(self, asked: LlmRequest | None = None) -> LlmAnswer | ApplicationError:
        """What is left when Temporal has tried as often as it is told to, its waits left out."""
        for errors in range(20):
            try:
                return await self.once(asked, errors)
            except ApplicationError as error:
                self.failures.append(error)
                if error.non_retryable:
                    return error
        raise AssertionError("tried for ever")

    async def failure(self, asked: LlmRequest | None = None) -> ApplicationError:
        """The failure it ends with."""
        end = await self.until_final(asked)
        assert isinstance(end, ApplicationError), end
        return end


@contextmanager
def asking(
    exchanges: Any,
    directory: Path,
    *,
    key: str | None = CANARY,
    model: str | None = "demo",
    timeout: float = 20.0,
    retry: Retry = QUICKLY,
    tools: Sequence[ToolSpec] = (),
    base_url: str = "",
) -> Iterator[Asking]:
    """A scripted LLM that is open, and a worker's way to ask it."""
    with ScriptedLlm(Script.of(exchanges)) as llm:
        language = LanguageModel(base_url or llm.url, SecretStr(key) if key else None, model, timeout)
        specs = {spec.name: spec for spec in tools}
        values = ValueStore(LocalDirectory(directory))
        yield Asking(llm, AskLlm(language, values, specs, retry, kinds=answer_kinds(), composers=composers()))

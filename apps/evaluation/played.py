"""What a run did: its LLM requests, its tool calls, its end. Of the record and of a replay alike, so that both compare.

Pure.

Calls are the same only if tool and arguments are equal to the character: anything softer gives one call the answer to
another. A call that is not in the record ends the replay by default, as any result made up for it is fiction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure

from plansurvive.apps.evaluation.answers import ASK, Key, data_of
from plansurvive.apps.evaluation.record import Done, Record
from plansurvive.plans.model import ToolSpec
from plansurvive.plans.usage import Usage


@dataclass(frozen=True)
class Asked:
    """One LLM request."""

    purpose: str
    question: str
    """Digest of what was sent with it, without the key that names the run."""
    usage: Usage
    model: str = ""
    seconds: float = 0.0
    code: str = ""
    """Of a request that failed."""
    answer: Any = None
    """As it was understood; the text of one that was of no use."""


@dataclass(frozen=True)
class Called:
    """One tool call that was made."""

    key: Key
    end: str
    """`done`, the code of its error, or `unknown` if it had not ended."""
    result: str = ""
    """Digest of what it gave."""
    repeated: bool = False


@dataclass
class Played:
    """A run, recorded or replayed."""

    requests: list[Asked] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    end: str = ""
    """Of an agent: how it ended. Empty: it did not."""
    answer: str = ""
    tasks: list[str] = field(default_factory=list)
    stopped: str = ""
    """Why a replay ended before the run did."""
    missing: Key | None = None
    """The call that the record has no answer to, if there was one."""
    missed: int = 0
    """How many such calls there were."""
    refused: list[str] = field(default_factory=list)
    """Of a plan: edits of people that the plan, as it is now, refuses."""
    plan: dict[str, Any] | None = None
    """Of a plan that an LLM wrote: the plan."""
    problems: list[str] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """Of all requests."""
        total = Usage()
        for each in self.requests:
            total = total.plus(each.usage)
        return total

    def closes(self, agent: Mapping[str, Any]) -> None:
        """Take over how an agent ended, from its view."""
        self.end, self.answer = str(agent.get("end") or ""), str(agent.get("answer") or "")
        tasks = agent.get("tasks")
        rows = tasks if isinstance(tasks, list) else []
        self.tasks = [f"{each.get('status')}: {each.get('objective')}" for each in rows if isinstance(each, dict)]


def of_record(record: Record, tools: Mapping[str, ToolSpec]) -> Played:
    """What the recorded run did."""
    played = Played()
    for done in record.done:
        if done.name == ASK:
            played.requests.append(asked(data_of(done.input), done.result, done.failure, done.seconds))
        elif done.name in tools and done.input:
            played.calls.append(called(Key.sent(done.name, done.input), done))
    summary = data_of(record.result or []) or detail_of(record.failure)
    agent = summary.get("agent") if isinstance(summary, dict) else None
    if isinstance(agent, dict):
        played.closes(agent)
    return played


def asked(
    request: Any, result: Sequence[Payload] | None, failure: Failure | None, seconds: float, model: str = ""
) -> Asked:
    """A request, from the input and the outcome of its activity."""
    sent = request if isinstance(request, dict) else {}
    question = digest({name: value for name, value in sent.items() if name != "key"})
    answer = data_of(result or [])
    said = answer if isinstance(answer, dict) else {}
    detail = said if said else detail_of(failure)
    return Asked(
        purpose=str(sent.get("purpose") or "agent"),
        question=question,
        usage=_usage(detail.get("usage")),
        model=str(said.get("model") or model),
        seconds=seconds,
        code=failure.application_failure_info.type or "LLM_UNAVAILABLE" if failure is not None else "",
        answer=said.get("text") if said.get("parsed") is None else said["parsed"],
    )


def called(key: Key, done: Done, *, repeated: bool = False) -> Called:
    """A call, from the outcome of its activity."""
    if done.result is not None:
        value = data_of(done.result)
        given = value if isinstance(value, dict) else {}
        return Called(key, "done", digest([given.get("value"), given.get("large")]), repeated)
    if done.failure is not None:
        return Called(key, code_of(done.failure), digest(done.failure.message), repeated)
    return Called(key, "cancelled" if done.cancelled else "unknown", "", repeated)


def code_of(failure: Failure) -> str:
    """The code of a failed call."""
    return failure.application_failure_info.type or (
        "TIMEOUT" if failure.HasField("timeout_failure_info") else "failed"
    )


def detail_of(failure: Failure | None) -> dict[str, Any]:
    """The details of a failure, as JSON data."""
    found = data_of(failure.application_failure_info.details.payloads) if failure is not None else None
    return found if isinstance(found, dict) else {}


def digest(value: Any) -> str:
    """A short hash of JSON data."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _usage(found: Any) -> Usage:
    try:
        return Usage.model_validate(found or {})
    except ValueError:
        return Usage()

"""What the record answers: tool calls by tool and arguments, in order; decisions of people about the same calls.

A call counts as recorded if the tool is the same and the arguments are, to the last character: what another call would
have given, nobody knows. Of a call that is made more often than it was recorded, the last answer is repeated if the
tool is pure, and marked as repeated. Whatever else a workflow has done (its check, notes in the agent history) is
answered by name, in order.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from temporalio.api.common.v1 import Payload

from plansurvive.apps.evaluation.record import Done, Message, Record
from plansurvive.features import packages
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.model import ToolSpec

ASK = "ask_llm"
CHECK = "check_plan"


class Key(NamedTuple):
    """What makes two calls the same: the tool, and its arguments as JSON."""

    tool: str
    args: str

    @classmethod
    def of(cls, tool: str, args: Mapping[str, Any]) -> Key:
        """The key of a call."""
        return cls(tool, json.dumps(args, sort_keys=True, ensure_ascii=False, default=str))

    @classmethod
    def sent(cls, tool: str, arguments: Sequence[Payload]) -> Key:
        """The key of a tool's activity, from its input."""
        call = data_of(arguments)
        args = call.get("args") if isinstance(call, dict) else None
        return cls.of(tool, args if isinstance(args, dict) else {})


class Found(NamedTuple):
    """A recorded answer. `repeated`: it was given before, to the same call."""

    done: Done
    repeated: bool = False


class Answers:
    """The recorded answers of one run, used up as they are asked for."""

    def __init__(self, record: Record, tools: Mapping[str, ToolSpec]) -> None:
        """`tools`: of the worker that the run was recorded on."""
        self._tools = tools
        self._calls: dict[Key, list[Done]] = defaultdict(list)
        self._rest: dict[str, list[Done]] = defaultdict(list)
        self._used: Counter[Key] = Counter()
        for done in record.done:
            if done.name == ASK:
                continue
            if done.name in tools and done.input:
                self._calls[Key.sent(done.name, done.input)].append(done)
            else:
                self._rest[done.name].append(done)

    def is_tool(self, name: str) -> bool:
        """Whether an activity of this name is a tool's."""
        return name in self._tools

    def has(self, key: Key) -> bool:
        """Whether the record answers this call, now."""
        return self._next(key) is not None

    def call(self, key: Key) -> Found | None:
        """The answer to a call; None if there is none in the record."""
        found = self._next(key)
        self._used[key] += 1
        return found

    def other(self, name: str) -> Done | None:
        """The answer to the next activity of this name that is not a tool's. The last check of a worker stays good."""
        left = self._rest[name]
        if name == CHECK and len(left) == 1:
            return left[0]
        return left.pop(0) if left else None

    def _next(self, key: Key) -> Found | None:
        recorded, used = self._calls.get(key, []), self._used[key]
        if used < len(recorded):
            return Found(recorded[used])
        is_pure = key.tool in self._tools and self._tools[key.tool].effect == "pure"
        return Found(recorded[-1], repeated=True) if recorded and is_pure else None


class Decisions:
    """What people decided about calls, by what the calls were."""

    def __init__(self) -> None:
        self._by_call: dict[Key, list[dict[str, Any]]] = defaultdict(list)

    def note(self, key: Key, message: dict[str, Any]) -> None:
        """Remember a decision about a call."""
        self._by_call[key].append(message)

    def take(self, key: Key) -> dict[str, Any] | None:
        """The next decision about a call, or the last again; None if nobody decided about it."""
        left = self._by_call.get(key)
        return None if not left else left.pop(0) if len(left) > 1 else left[0]


def decisions_of(record: Record) -> list[dict[str, Any]]:
    """The recorded decisions about calls, oldest first, each with `approved`."""
    found = []
    for message in record.messages:
        sent = data_of(message.arguments)
        if message.name in ("approve", "deny", "decide") and isinstance(sent, dict):
            approved = sent.get("approved") if message.name == "decide" else message.name == "approve"
            found.append({**sent, "approved": approved is True})
    return found


def is_about(message: Mapping[str, Any], step_id: str, digest: str) -> bool:
    """Whether a decision is about this step, and the call that it asks for."""
    named, meant = message.get("stepId") or message.get("step_id"), message.get("digest")
    return named == step_id and (not meant or not digest or meant == digest)


def review_messages(record: Record) -> list[Message]:
    """The edits and feedback of people, in order, up to the moment at which the plan was begun first."""
    found = []
    for message in record.messages:
        sent = data_of(message.arguments)
        if message.name == "begin" or (
            message.name == "control" and isinstance(sent, dict) and sent.get("action") == "begin"
        ):
            break
        if message.name in ("edit", "regenerate"):
            found.append(message)
    return found


def facts_of(record: Record) -> Facts:
    """What the run's workers told about themselves; empty if the run ended before."""
    checks = [each for each in record.of(CHECK) if each.result]
    tools: dict[str, ToolSpec] = {}
    facts = Facts()
    for each in checks:
        facts = Facts.model_validate(data_of(each.result or []))
        tools |= facts.tools
    return facts.model_copy(update={"tools": tools})


def data_of(payloads: Sequence[Payload]) -> Any:
    """The JSON data of the first payload; None if it is none."""
    try:
        return json.loads(payloads[0].data) if payloads else None
    except ValueError:
        return None


def unbound(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts without what would reach outside: no notification, no lock, no host, and no signature that none can give.

    Approvals stay as they were: what a person was asked about is asked for again, and answered from the record.
    """
    left = {name: value for name, value in facts.items() if name not in _REACHES_OUT}
    outside = {each.__name__.rpartition(".")[2] for each in packages() if each.REACHES_OUT}
    left["features"] = [name for name in facts.get("features", ()) if name not in outside]
    left["parts"] = {name: part for name, part in facts.get("parts", {}).items() if name not in outside}
    return left


_REACHES_OUT = frozenset((
    *("mustSign", "must_sign", "ownFiles", "own_files"),
    *("keepsSummaries", "keeps_summaries", "searchAttributes", "search_attributes"),
))  # fmt: skip

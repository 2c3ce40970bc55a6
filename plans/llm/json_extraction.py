"""One JSON object out of a model's text, whatever stands around it, or the one thing that is wrong with the text.

A whole text that is JSON is taken as it is. Else the text is searched from brace to matching brace, in linear time:
there must be exactly one object, and it must be complete, so that half an answer is never taken for a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from plans.definition.parsing import Unreadable, parse_json
from plans.model import Value

MAX_PROBLEMS = 50
"""Problems of one answer that are told; the rest is counted."""
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|"|[{}]', re.DOTALL)
_ONE_OBJECT = "answer with one JSON object in the format asked for, and nothing else"


class AnswerProblem(Value):
    """An answer that cannot be used; `message` is for the model as well as for people."""

    code: str = "LLM_BAD_ANSWER"
    message: str = Field(description="What is wrong, and what to answer instead.")
    problems: list[str] = Field(default_factory=list, description="Each of several, place first.")

    @classmethod
    def of(cls, problems: Sequence[str]) -> AnswerProblem:
        """All that is wrong with an answer whose JSON could be read."""
        told = [" ".join(problem.split())[:1_000] for problem in problems[:MAX_PROBLEMS]]
        more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        return cls(message="The answer cannot be used: " + "; ".join(told + more), problems=told + more)


def json_object(text: str, bare_list: str = "") -> dict[str, Any] | AnswerProblem:
    """The one object in the text. With `bare_list`, a text that is a list stands for an object with that field."""
    if not text.strip():
        return _wrong(f"The answer was empty; {_ONE_OBJECT}.")
    try:
        whole = parse_json(text)
    except Unreadable as error:
        return _searched(text, error)
    if isinstance(whole, list) and bare_list:
        return {bare_list: whole}
    return whole if isinstance(whole, dict) else _wrong(f"The answer is JSON, but no object; {_ONE_OBJECT}.")


def _searched(text: str, why: Unreadable) -> dict[str, Any] | AnswerProblem:
    if why.problem.code not in ("PLAN_NOT_JSON", "PLAN_TOO_DEEP"):
        return _wrong(f"The answer cannot be used: {why.problem.message}; {_ONE_OBJECT}.")
    found: list[dict[str, Any]] = []
    broken: Unreadable | None = None
    for candidate in _candidates(text):
        if candidate is None:
            return _wrong(f"The answer ends in the middle of an object; {_ONE_OBJECT}, shorter if need be.")
        try:
            found.append(parse_json(candidate))
        except Unreadable as error:
            if re.search(r"[\"':\n]", candidate):
                broken = error
    if broken is not None:
        return _wrong(f"The answer cannot be used: {broken.problem.message}; {_ONE_OBJECT}.")
    if len(found) > 1:
        return _wrong(f"The answer holds {len(found)} JSON objects, only one is expected; {_ONE_OBJECT}.")
    return found[0] if found else _wrong(f"The answer holds no JSON object; {_ONE_OBJECT}.")


def _candidates(text: str) -> Iterator[str | None]:
    """Every outermost pair of braces with what is between them; None for one that is never closed."""
    at = text.find("{")
    while at >= 0:
        end = _closing(text, at)
        if end is None:
            yield None
            return
        yield text[at:end]
        at = text.find("{", end)


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for match in _MARKS.finditer(text, start):
        if match[0] == '"':
            return None
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and match[0] == "}":
            return match.end()
    return None


def _wrong(message: str) -> AnswerProblem:
    return AnswerProblem(message=message, problems=[message])

"""Extracts the one JSON object from a model's text, or says what is wrong with the text.

A text that is JSON is parsed directly. Otherwise it is scanned for matching braces, in linear time: it must contain
exactly one object, and no unclosed one, so that a truncated answer is never mistaken for a complete one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from plansurvive.plans.definition.parsing import Unreadable, parse_json
from plansurvive.plans.model import Value

MAX_PROBLEMS = 50
"""Maximum number of problems listed per answer; further ones are only counted."""
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|"|[{}]', re.DOTALL)
_ONE_OBJECT = "answer with one JSON object in the requested format, and nothing else"


class AnswerProblem(Value):
    """An unusable answer; `message` is for the model as well as for people."""

    code: str = "LLM_BAD_ANSWER"
    message: str = Field(description="What is wrong, and what to answer instead.")
    problems: list[str] = Field(default_factory=list, description="Each problem, starting with its location.")

    @classmethod
    def of(cls, problems: Sequence[str]) -> AnswerProblem:
        """The problem of an answer that is valid JSON."""
        listed = [" ".join(problem.split())[:1_000] for problem in problems[:MAX_PROBLEMS]]
        more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        return cls(message="The answer cannot be used: " + "; ".join(listed + more), problems=listed + more)


def json_object(text: str, bare_list: str = "") -> dict[str, Any] | AnswerProblem:
    """The object in the text. `bare_list`: name of the field that a text consisting of a list is the value of."""
    if not text.strip():
        return _wrong(f"The answer was empty; {_ONE_OBJECT}.")
    try:
        whole = parse_json(text)
    except Unreadable as error:
        return _searched(text, error)
    if isinstance(whole, list) and bare_list:
        return {bare_list: whole}
    return whole if isinstance(whole, dict) else _wrong(f"The answer is JSON, but not an object; {_ONE_OBJECT}.")


def _searched(text: str, why: Unreadable) -> dict[str, Any] | AnswerProblem:
    if why.problem.code not in ("PLAN_NOT_JSON", "PLAN_TOO_DEEP"):
        return _wrong(f"The answer cannot be used: {why.problem.message}; {_ONE_OBJECT}.")
    objects: list[dict[str, Any]] = []
    broken: Unreadable | None = None
    for candidate in _candidates(text):
        if candidate is None:
            return _wrong(f"The answer ends in the middle of an object; {_ONE_OBJECT}; shorten it if necessary.")
        try:
            objects.append(parse_json(candidate))
        except Unreadable as error:
            if re.search(r"[\"':\n]", candidate):  # otherwise braces in prose, such as {name}
                broken = error
    if broken is not None:
        return _wrong(f"The answer cannot be used: {broken.problem.message}; {_ONE_OBJECT}.")
    if len(objects) > 1:
        return _wrong(f"The answer contains {len(objects)} JSON objects instead of one; {_ONE_OBJECT}.")
    return objects[0] if objects else _wrong(f"The answer contains no JSON object; {_ONE_OBJECT}.")


def _candidates(text: str) -> Iterator[str | None]:
    """Each outermost pair of braces with its content; None for one that is never closed."""
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

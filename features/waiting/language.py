"""The tools `ask` and `wait_for` in the language of plans: what a question is, and a wait for an event."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from plansurvive.features.waiting.model import EVENT_NAME, WAIT_FOR
from plansurvive.plans.definition import questions
from plansurvive.plans.definition.durable_tools import Asks, DurableTool
from plansurvive.plans.definition.language import Language
from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import compiled
from plansurvive.plans.expressions.references import find, sample


def name_problem(name: str) -> str:
    """Why a text cannot name an event; empty if it can."""
    if re.fullmatch(EVENT_NAME.removesuffix("$"), name) and len(name) <= 200:
        return ""
    return f"{name[:80]!r} cannot name an event; use letters, digits and _ . : / -, as in order.paid"


def _written_problems(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    name, match = args.get("event"), args.get("match")
    is_written = isinstance(name, str) and not find(name)
    found = [("args.event", name_problem(str(name)) if is_written else "")]
    found += [("args.match", _match_problem(match))] if isinstance(match, str) and not match.startswith("$") else []
    return [(field, why) for field, why in found if why]


def _match_problem(match: str) -> str:
    try:
        compiled(sample(match, "jmespath"))
    except (BadExpression, BadReference) as error:
        return error.message
    return ""


def _problem(args: Mapping[str, Any]) -> str:
    timeout = args.get("timeout")
    if isinstance(timeout, float) and not math.isfinite(timeout):
        return "args.timeout: not a finite number"
    why = name_problem(str(args.get("event")))
    if why:
        return f"args.event: {why}"
    try:
        compiled(args["match"]) if args.get("match") else None
    except BadExpression as error:
        return f"args.match: {error.message}"
    return ""


LANGUAGE = Language(
    tools=[
        DurableTool(
            questions.ASK,
            Asks("QUESTION", "it asks a person a question; a `default` with a `timeout` answers in their place", True),
            schema_args=("schema", "choices"),  # choices are texts, numbers, or both
            written_problems=questions.written_problems,
            problem=questions.problem,
        ),
        DurableTool(WAIT_FOR, written_problems=_written_problems, problem=_problem, unforeseen="waits for an event"),
    ]
)

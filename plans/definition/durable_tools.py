"""What the arguments of the tools that workflows run themselves must be, besides what their schemas say.

No activity would validate them. They are part of the language of plans, as the fields of a step are: a plan is checked
as a whole, wherever it comes from, and whatever runs its steps. References are not looked into while they are as
written; each stands for some value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from plansurvive.plans import questions
from plansurvive.plans.agents.as_plan import TOOL as AGENT
from plansurvive.plans.definition.output_schema import schema_problem
from plansurvive.plans.errors import BadExpression, BadReference
from plansurvive.plans.expressions.conditions import compiled
from plansurvive.plans.expressions.references import find, sample
from plansurvive.plans.questions import ASK

SLEEP = "sleep"
"""Name of the tool that is a timer."""
WAIT_FOR = "wait_for"
"""Name of the tool that waits for an event."""
EVENT_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:/-]*$"
"""Letters, digits and `_ . : / -`, as in `order.paid` or `deploy/finished`."""


def written_problems(tool: str, args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with the arguments of such a tool as their author wrote them, as (field, sentence)."""
    if tool == ASK:
        return questions.written_problems(args)
    if tool == AGENT:
        schema = args.get("outputSchema")
        why = schema_problem(schema) if isinstance(schema, dict) and not find(schema) else ""
        return [("args.outputSchema", why)] if why else []
    if tool != WAIT_FOR:
        return []
    name, match = args.get("event"), args.get("match")
    is_written = isinstance(name, str) and not find(name)
    found = [("args.event", name_problem(str(name)) if is_written else "")]
    found += [("args.match", _match_problem(match))] if isinstance(match, str) and not match.startswith("$") else []
    return [(field, why) for field, why in found if why]


def problem(tool: str, args: Mapping[str, Any]) -> str:
    """What is wrong with the arguments once their references are filled in; empty if nothing is."""
    if tool == ASK:
        return questions.problem(args)
    if tool == AGENT:
        why = schema_problem(args.get("outputSchema") or {})
        return f"args.outputSchema: {why}" if why else ""
    if tool != WAIT_FOR:
        return ""
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


def name_problem(name: str) -> str:
    """Why a text cannot name an event; empty if it can."""
    if re.fullmatch(EVENT_NAME.removesuffix("$"), name) and len(name) <= 200:
        return ""
    return f"{name[:80]!r} cannot name an event; use letters, digits and _ . : / -, as in order.paid"


def _match_problem(match: str) -> str:
    try:
        compiled(sample(match, "jmespath"))
    except (BadExpression, BadReference) as error:
        return error.message
    return ""

"""Plan ids, and the workflow ids derived from them.

An id chosen by the user is used unchanged and never reused. A generated id is made of words of the title and six
random characters.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Awaitable, Callable
from typing import TypeVar

from plansurvive.client.errors import BadPlanId, PlanExists
from plansurvive.plans.model.identities import AGENT_PREFIX

T = TypeVar("T")

PREFIX = "plan-"
AGENT = AGENT_PREFIX
_ALLOWED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}")
"""With the colons of a time: Temporal ends the ids of a schedule's runs in one, `nightly-2027-03-28T05:00:00Z`."""
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_TRIES = 10
"""Among 10,000,000 ids with the same words, ten generated ones are all taken once in 10^20 times."""


def workflow_id(plan_id: str) -> str:
    """The workflow id of a plan, given its plan id or its workflow id. Raises BadPlanId.

    A text that begins with `plan-` or `agent-` is taken as a workflow id.
    """
    if not _ALLOWED.fullmatch(plan_id.removeprefix(PREFIX)):
        shown = plan_id if len(plan_id) <= 60 else plan_id[:57] + "..."
        text = f"{shown!r} is not a plan id: use 1 to 200 letters, digits, '_', '-' or '.'; `plan list` shows the plans"
        raise BadPlanId(text)
    whole = any(plan_id.startswith(prefix) and len(plan_id) > len(prefix) for prefix in (PREFIX, AGENT))
    return plan_id if whole else PREFIX + plan_id


def recorded_id(value: object) -> str | None:
    """A plan id from a memo, which anybody may have written; None if it is none."""
    return value if isinstance(value, str) and _ALLOWED.fullmatch(value) else None


def plan_id(workflow_id: str) -> str:
    """The plan id of a workflow id; a plan id is returned unchanged."""
    return workflow_id.removeprefix(PREFIX)


def checked(given: str) -> str:
    """Validate an id chosen for a new plan and return it. Raises BadPlanId."""
    if given.startswith(PREFIX):
        raise BadPlanId(f"a plan id cannot begin with '{PREFIX}', the prefix of workflow ids; remove it from {given!r}")
    if given.startswith(AGENT):
        raise BadPlanId(
            f"a plan id cannot begin with '{AGENT}', the prefix of agent ids; choose another id than {given!r}"
        )
    workflow_id(given)
    if ":" in given:
        raise BadPlanId(f"only the runs of a schedule have a colon in their id; remove it from {given!r}")
    return given


def generated(title: str) -> str:
    """Generate an id for a new plan: words of its title and six random characters."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    words = re.sub(r"^((plan|agent)(-|$))+", "", words) or "untitled"  # it must not look like a workflow id
    return f"{words}-{''.join(secrets.choice(_BASE32) for _ in range(6))}"


async def with_generated(
    title: str, begin: Callable[[str], Awaitable[T]], generate: Callable[[str], str] = generated
) -> T:
    """Begin something under a generated id, or under another one if that was used before.

    Of 10,000 ids with the same words, two are alike once in twenty times. Raises what `begin` raises.
    """
    for _ in range(_TRIES - 1):
        try:
            return await begin(generate(title))
        except PlanExists:
            continue
    return await begin(generate(title))

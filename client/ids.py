"""How plans are named: the id a person uses, and the workflow id made of it.

An id given by a person is kept as it is and never used twice. One that is made begins with words of the title and ends
with six random characters.
"""

from __future__ import annotations

import re
import secrets
import unicodedata

from client.errors import BadPlanId

PREFIX = "plan-"
AGENT = "agent-"
"""Begins the ids of agents, which are their workflow ids as well."""
_ALLOWED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def workflow_id(plan_id: str) -> str:
    """The workflow id of a plan, given its plan id or its workflow id. Raises BadPlanId.

    A text that begins with `plan-` or `agent-` is taken as a workflow id.
    """
    if not _ALLOWED.fullmatch(plan_id):
        shown = plan_id if len(plan_id) <= 60 else plan_id[:57] + "..."
        text = (
            f"{shown!r} is no plan id: write 1 to 200 letters, digits, '_', '-' or '.'; `plan list` shows what there is"
        )
        raise BadPlanId(text)
    whole = any(plan_id.startswith(prefix) and len(plan_id) > len(prefix) for prefix in (PREFIX, AGENT))
    return plan_id if whole else PREFIX + plan_id


def plan_id(workflow_id: str) -> str:
    """The plan id in a workflow id."""
    return workflow_id.removeprefix(PREFIX)


def checked(given: str) -> str:
    """An id that a person chose for a new plan. Raises BadPlanId."""
    if given.startswith(PREFIX):
        raise BadPlanId(f"an id cannot begin with '{PREFIX}', which is put before it; leave it out of {given!r}")
    if given.startswith(AGENT):
        raise BadPlanId(f"an id of a plan cannot begin with '{AGENT}', which the ids of agents do; choose another")
    workflow_id(given)
    return given


def invented(title: str) -> str:
    """An id for a new plan: words of its title, and six random characters."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-")
    words = re.sub(r"^((plan|agent)(-|$))+", "", words) or "untitled"  # it must not look like a workflow id
    return f"{words}-{''.join(secrets.choice(_BASE32) for _ in range(6))}"

"""Who may be asked through an MCP client, and about what. Pure.

An elicitation reaches a person only as far as the client is honest: one that declares the capability and lets its model
fill in the form decides itself, and no server can tell. So the operator chooses what may be decided there.
"""

from __future__ import annotations

from typing import Literal

from mcp.types import ClientCapabilities

from plansurvive.plans.views.models.card import QUESTION

Deciding = Literal["here", "questions", "elsewhere"]
"""What a person may decide through the client: everything; only answer questions; nothing."""


def can_ask(capabilities: ClientCapabilities | None) -> bool:
    """Whether the client has declared elicitation in form mode; declared without a mode, it means that one."""
    declared = capabilities.elicitation if capabilities else None
    return declared is not None and (declared.form is not None or declared.url is None)


def may_ask(deciding: Deciding, kind: str) -> bool:
    """Whether a decision of this kind (of a pending decision, or a review) may be asked for through the client."""
    return deciding == "here" or (deciding == "questions" and kind == QUESTION)

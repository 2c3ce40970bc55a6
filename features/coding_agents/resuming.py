"""Why a coding agent is not resumed by itself: the step of its plan is, with the same session."""

from __future__ import annotations

from typing import Any

from plansurvive.client.verbs.continuing import Continued, NextRun
from plansurvive.features.coding_agents.model import CodingSession
from plansurvive.plans.errors import Refused


def id_like(child: str, plan_id: str, step_id: str) -> str:  # noqa: ARG001
    """Its id is like that of any agent, which `agents` knows."""
    return ""


def next_run(state: Any, how: Continued) -> NextRun | None:  # noqa: ARG001
    """None: the state is no coding agent's. Raises Refused NOT_A_PLAN."""
    if CodingSession.feature not in ((state.get("run") or {}).get("parts") or {}):
        return None
    raise Refused("a coding agent continues with the step of its plan: `plan resume` of its plan", "NOT_A_PLAN")

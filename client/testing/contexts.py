"""The context of a call that a test makes by hand, on real files."""

from __future__ import annotations

from pathlib import Path

from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.plans.activity_io import Call
from plansurvive.plans.model import Retry


def tool_context(workspace: Path, key: str = "plan-p/s") -> ToolContext:
    """A context for calling a tool as a function. `key`: of the call, as `keyed` tools use it."""
    call = Call(args={}, plan_id="p", step_id="s", key=key, workspace=str(workspace), timeout=10, retry=Retry())
    return ToolContext(call, Workspace(str(workspace)), Effects.at(workspace / "effects"))

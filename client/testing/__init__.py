"""Plans in tests of yours: a server and a worker of the test's own, tools replaced by fakes, approvals by rule.

`PlanTester` runs plans; `client.testing.fixtures` has it as a fixture of pytest. May import everything but worker.py.
"""

from pathlib import Path

from plansurvive.activities.tools.tool import ToolContext
from plansurvive.activities.workspace.effect_log import Effects
from plansurvive.activities.workspace.workspace import Workspace
from plansurvive.client.testing.fakes import fake
from plansurvive.client.testing.tester import Outcome, PlanTester
from plansurvive.plans.activity_io import Call
from plansurvive.plans.model import Retry

__all__ = ["Outcome", "PlanTester", "fake", "tool_context"]


def tool_context(workspace: Path, key: str = "plan-p/s") -> ToolContext:
    """A context for calling a tool as a function. `key`: of the call, as `keyed` tools use it."""
    call = Call(args={}, plan_id="p", step_id="s", key=key, workspace=str(workspace), timeout=10, retry=Retry())
    return ToolContext(call, Workspace(str(workspace)), Effects.at(workspace / "effects"))

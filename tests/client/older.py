"""PlanWorkflow as a worker of an older version has it: everything but the update `control`."""

from __future__ import annotations

from typing import Any

from temporalio import workflow

from plans.errors import PlanError
from workflows.plan import PlanWorkflow

_NEWER = ("control", "_may_control")
_MEMBERS: dict[str, Any] = {}
for _base in reversed(PlanWorkflow.__mro__[:-1]):
    _MEMBERS |= {name: value for name, value in vars(_base).items() if not name.startswith("__")}
Older: Any = type("Older", (), {name: value for name, value in _MEMBERS.items() if name not in (*_NEWER, "run")})


@workflow.defn(name="PlanWorkflow", failure_exception_types=[PlanError])
class OlderPlanWorkflow(Older):  # type: ignore[misc]
    """It does what PlanWorkflow does."""

    @workflow.init
    def __init__(self, *arguments: Any) -> None:
        PlanWorkflow.__init__(self, *arguments)

    @workflow.run
    async def run(self, *arguments: Any) -> dict[str, Any]:
        """As there."""
        return await PlanWorkflow.run(self, *arguments)

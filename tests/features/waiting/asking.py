"""Steps that ask and wait, in runs without a server."""

from __future__ import annotations

from typing import Any

from plansurvive.activities.tools.durable import ask as ask_tool
from plansurvive.activities.tools.durable import wait_for as wait_tool
from plansurvive.features.waiting.language import LANGUAGE
from plansurvive.plans.activity_io import Facts
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Step
from tests.plans.building import NOW, TOOLS, run_of

SPECS = {**TOOLS, "ask": ask_tool.spec, "wait_for": wait_tool.spec}


def ask(name: str = "ask", *needs: str, **args: Any) -> Step:
    """A step that asks a question."""
    return Step(id=name, tool="ask", args={"question": "Which?", **args}, depends_on=list(needs))


def wait(name: str = "wait", **args: Any) -> Step:
    """A step that waits for an event."""
    return Step(id=name, tool="wait_for", args={"event": "paid", **args})


def asking(*steps: Step, **fields: Any) -> Schedule:
    """The schedule of a run of these steps, begun."""
    schedule = Schedule(run_of(*steps, facts=Facts(tools=SPECS, workspace="/w"), **fields))
    schedule.run.language = LANGUAGE
    schedule.begin(NOW)
    return schedule

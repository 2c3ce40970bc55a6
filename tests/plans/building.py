"""Small plans, tools and runs for the tests of the pure core: plain values, made from a few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from plansurvive.plans.activity_io import Facts
from plansurvive.plans.execution.schedule import Schedule
from plansurvive.plans.model import Plan, Step, ToolSpec
from plansurvive.plans.run import Options, Result, Run, Status
from plansurvive.plans.step_state import Outcome

NOW = datetime(2026, 1, 20, 10, 30, tzinfo=UTC)


def spec(name: str, properties: dict[str, Any] | None = None, **fields: Any) -> ToolSpec:
    """A tool; arguments without a default are required, and there are no others."""
    properties = properties or {}
    required = [key for key, schema in properties.items() if "default" not in schema]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return ToolSpec(name=name, description=f"Does {name}.", args_schema=schema, **fields)


_TEXT = {"type": "string"}
_SECONDS = {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 86_400}, {"type": "null"}], "default": None}

TOOLS = {
    tool.name: tool
    for tool in (
        spec("read_file", {"path": {"type": "string", "minLength": 1}, "limit": {"type": "integer", "default": 0}}),
        spec("write_file", {"path": _TEXT, "content": _TEXT}),
        spec("delete_file", {"path": _TEXT}, approval="always"),
        spec(
            "run_command",
            {"command": _TEXT, "timeout": _SECONDS, "env": {"type": "object", "default": {}}},
            approval="always",
            quoting={"command": "shell"},
        ),
        spec("run_python", {"code": _TEXT}, approval="always", quoting={"code": "python"}),
        spec(
            "http_request",
            {"url": _TEXT, "method": {"enum": ["GET", "HEAD", "POST"], "default": "GET"}},
            approval="always",
            approval_exempt={"method": ["GET", "HEAD"]},
        ),
        spec("sleep", {"seconds": {"type": "number", "minimum": 0}}, durable=True, effect="pure"),
        spec("note", {"text": {}, "more": {"default": None}}),
    )
}


def step(name: str, *needs: str, uses: tuple[str, ...] = (), **fields: Any) -> Step:
    """A step that needs others, and uses the values of some."""
    args: dict[str, Any] = {"text": [f"${used}" for used in uses]}
    return Step.model_validate({"id": name, "tool": "note", "args": args, "depends_on": list(needs)} | fields)


def plan_of(*steps: Step, **fields: Any) -> Plan:
    """A plan of these steps."""
    return Plan.model_validate({"id": "p", "steps": list(steps)} | fields)


def run_of(*steps: Step, options: Options | None = None, facts: Facts | None = None, **fields: Any) -> Run:
    """A run of such a plan, in which nothing has happened."""
    facts = facts or Facts(tools=TOOLS, workspace="/w", places=True)
    return Run.of(plan_of(*steps, **fields), options or Options(), facts, {})


def begun(*steps: Step, **fields: Any) -> Schedule:
    """The schedule of such a run, begun."""
    schedule = Schedule(run_of(*steps, **fields))
    schedule.begin(NOW)
    return schedule


def completed(value: Any = None) -> Outcome:
    """The step did its work."""
    return Outcome(Status.COMPLETED, Result(ok=True, value=value, duration=5, timestamp=NOW))


def failed(error: str = "it broke") -> Outcome:
    """The step could not."""
    return Outcome(Status.FAILED, Result(ok=False, error=error, code="TOOL_FAILED", timestamp=NOW))


def skipped(reason: str = "skipped", opens: bool = True) -> Outcome:
    """The step was not to be done; a denial does not open what depends on it."""
    code = None if opens else "DENIED"
    return Outcome(Status.SKIPPED, Result(ok=False, error=reason, code=code, timestamp=NOW), opens)


def statuses(run: Run) -> dict[str, str]:
    """The status of every step."""
    return {name: state.status.value for name, state in run.steps.items()}


def later(seconds: float) -> datetime:
    """A time after NOW."""
    return NOW + timedelta(seconds=seconds)
